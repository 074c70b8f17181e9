//! The requests that change a stack.
use serde_json::value::RawValue;
use tr_breaker::Mode;
use tr_core::{ToolOutcome, canonical::Key, one_line};
use tr_idempotency::Resolution;
use tr_wire::{
    InvalidEnvelope,
    read::{
        Any, At, Faults, Flag, Index, Maybe, Node, Object, Strictness, Text, Word, Words, document,
        shape, words,
    },
};

/// A valid request: the name of its action, what it orders, and the reason that it gives.
pub(super) type Reasoned = (&'static str, Order, Option<String>);

/// What a valid request orders.
#[derive(Debug)]
pub(super) enum Order {
    Breaker { name: String, what: BreakerAction },
    Flush { target: FlushTarget, confirm: Option<u64> },
    Settle { key: Key, epoch: Option<u64>, settled_as: Resolution<ToolOutcome>, force: bool },
    Switch { on: bool },
    Reload,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakerAction {
    Reset,
    ForceOpen,
    Mode(Mode),
}

#[derive(Debug)]
pub(super) enum FlushTarget {
    Key(Key),
    Session(String),
    Tool(String),
}

/// What a request asks for; each word is one of `action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Breaker(BreakerAction),
    Flush,
    Settle,
    Switch,
    Reload,
}

impl Words for Action {
    type Value = Self;

    const WORDS: &'static [(&'static str, Self)] = &[
        ("reset", Self::Breaker(BreakerAction::Reset)),
        ("force_open", Self::Breaker(BreakerAction::ForceOpen)),
        ("disable", Self::Breaker(BreakerAction::Mode(Mode::Disabled))),
        ("shadow", Self::Breaker(BreakerAction::Mode(Mode::Shadow))),
        ("enforce", Self::Breaker(BreakerAction::Mode(Mode::Enforce))),
        ("flush", Self::Flush),
        ("settle", Self::Settle),
        ("switch", Self::Switch),
        ("reload", Self::Reload),
    ];
}

/// How a call of unknown outcome ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    DidNotRun,
    Done,
}

words! {
    Ended { DidNotRun = "did_not_run", Done = "done" }
}

/// Reads a request.
///
/// # Errors
/// Names everything that is wrong with it.
pub(super) fn read(body: &[u8]) -> Result<Reasoned, InvalidEnvelope> {
    document::<Request>("request", body, Strictness::Canonical)
}

shape! { Request => Reasoned, "an object with `action`", |node, faults| request(node, faults), true }
shape! { Name => String, "the name of the breaker", |source| source.text().map(Into::into), true }
shape! {
    RecordKey => Key, "64 hexadecimal digits, as GET shows them",
    |source| source.text().and_then(|key| key.parse().ok()),
    true
}
shape! {
    Unused => (), "only members that apply to this action",
    |node, faults| node.refuse(Self::expected(), faults),
    true
}

/// All members that a request may have; the action decides which it needs besides the first two.
const MEMBERS: &[&str] = &[
    "action", "why", "breaker", "key", "session", "tool", "confirm", "epoch", "outcome", "output",
    "force", "on",
];

fn request(node: &Node<'_>, faults: &mut Faults) -> Option<Reasoned> {
    let mut request = Object::open(node, MEMBERS, true, faults)?;
    let object = &mut request;
    let action = object.field::<Word<Action>>("action", faults);
    let order = match action {
        Some(Action::Breaker(what)) => {
            only(&["breaker"], object, faults);
            let name = object.field::<Name>("breaker", faults);
            name.map(|name| Order::Breaker { name, what })
        }
        Some(Action::Flush) => flush(node, object, faults),
        Some(Action::Settle) => settle(node, object, faults),
        Some(Action::Switch) => {
            only(&["on"], object, faults);
            object.field::<Flag>("on", faults).map(|on| Order::Switch { on })
        }
        Some(Action::Reload) => {
            only(&[], object, faults);
            Some(Order::Reload)
        }
        None => None,
    };
    let why = request.field::<Maybe<Text>>("why", faults);
    request.refuse_rest(faults);
    Some((Action::word(action?), order?, why?.map(Into::into)))
}

fn flush(node: &Node<'_>, object: &mut Object<'_>, faults: &mut Faults) -> Option<Order> {
    only(&["key", "session", "tool", "confirm"], object, faults);
    let key = object.field::<Maybe<RecordKey>>("key", faults);
    let session = object.field::<Maybe<Text>>("session", faults);
    let tool = object.field::<Maybe<Text>>("tool", faults);
    let confirm = object.field::<Maybe<Index>>("confirm", faults);
    let target = match (key?, session?, tool?) {
        (Some(key), None, None) => Some(FlushTarget::Key(key)),
        (None, Some(session), None) => Some(FlushTarget::Session(session.into())),
        (None, None, Some(tool)) => Some(FlushTarget::Tool(tool.into())),
        (None, None, None) => node.refuse_found(ONE_OF, "none of them", faults),
        _ => node.refuse_found(ONE_OF, "several of them", faults),
    };
    Some(Order::Flush { target: target?, confirm: confirm? })
}

const ONE_OF: &str = "one of `key`, `session` and `tool`";

fn settle(node: &Node<'_>, object: &mut Object<'_>, faults: &mut Faults) -> Option<Order> {
    only(&["key", "epoch", "outcome", "output", "force"], object, faults);
    let key = object.field::<RecordKey>("key", faults);
    let epoch = object.field::<Maybe<Index>>("epoch", faults);
    let force = object.field::<Maybe<Flag>>("force", faults);
    let ended = object.field::<Word<Ended>>("outcome", faults);
    let output = object.field::<Maybe<Any>>("output", faults)?;
    let at = At::Member(node.at, "output");
    let place = Node::new(&at, node.source);
    let settled_as = match (ended?, output.filter(|output| output.get() != "null")) {
        (Ended::DidNotRun, None) => Some(Resolution::DidNotRun),
        (Ended::DidNotRun, Some(_)) => {
            place.refuse_found("nothing, as the call did not run", "an output", faults)
        }
        (Ended::Done, Some(output)) => Some(Resolution::Done(given(output.as_raw()))),
        (Ended::Done, None) => {
            place.refuse_found("the answer that repeated calls get", "nothing", faults)
        }
    };
    Some(Order::Settle {
        key: key?,
        epoch: epoch?,
        settled_as: settled_as?,
        force: force? == Some(true),
    })
}

/// What a person gives as an answer: a replay of it goes to clients in one line.
fn given(output: &RawValue) -> ToolOutcome {
    let line = one_line(output.get()).into_owned();
    ToolOutcome::success(RawValue::from_string(line).expect("JSON without its white space is JSON"))
}

/// Refuses all members but the action, its reason and these.
fn only(names: &[&str], object: &mut Object<'_>, faults: &mut Faults) {
    for name in MEMBERS[2..].iter().filter(|name| !names.contains(name)) {
        object.field::<Maybe<Unused>>(name, faults);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn faults(body: &Value) -> String {
        read(body.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn every_fault_of_an_order_is_named() {
        assert!(faults(&json!({})).starts_with(r#"invalid request: /action: expected "reset", "#));
        assert!(faults(&json!({"action": "explode"})).ends_with("found \"explode\""));
        let array = "invalid request: the whole text: expected an object, found an array";
        assert_eq!(faults(&json!([])), array);
        let misspelt = faults(&json!({"action": "reset", "braeker": "x"}));
        assert!(misspelt.contains(r#"found the unknown key "braeker" (did you mean "breaker"?)"#));
        assert_eq!(
            faults(&json!({"action": "reset", "key": "k", "on": true})),
            "invalid request: /breaker: expected the name of the breaker, found nothing; \
             /key: expected only members that apply to this action, found a string; \
             /on: expected only members that apply to this action, found a boolean"
        );
        let one = "expected one of `key`, `session` and `tool`";
        assert!(
            faults(&json!({"action": "flush"})).ends_with(&format!("{one}, found none of them"))
        );
        let both = faults(&json!({"action": "flush", "tool": "a", "session": "b"}));
        assert!(both.ends_with(&format!("{one}, found several of them")));
        let unread = faults(&json!({"action": "flush", "key": "xyz", "confirm": -1}));
        assert!(unread.contains("/key: expected 64 hexadecimal digits, as GET shows them"));
        assert!(unread.contains("/confirm: expected a whole number") && !unread.contains(one));
        assert_eq!(
            faults(&json!({"action": "settle", "key": "xyz", "outcome": "done"})),
            "invalid request: /output: expected the answer that repeated calls get, found nothing; \
             /key: expected 64 hexadecimal digits, as GET shows them, found a string"
        );
        let ran = json!({"action": "settle", "key": "0".repeat(64), "outcome": "did_not_run", "output": 1});
        assert!(faults(&ran).contains("/output: expected nothing, as the call did not run"));
        let doubled = r#"{"action":"settle","key":"xyz","outcome":"done","output":{"a":1,"a":2}}"#;
        let doubled = read(doubled.as_bytes()).unwrap_err().to_string();
        assert!(doubled.contains("/output/a: expected each name once"), "{doubled}");
        let switch = faults(&json!({"action": "switch"}));
        assert_eq!(switch, "invalid request: /on: expected true or false, found nothing");
    }

    #[test]
    fn a_request_is_read_by_its_action() {
        let key = "0".repeat(64);
        for (body, name) in [
            (json!({"action": "force_open", "breaker": "pay"}), "force_open"),
            (json!({"action": "flush", "session": "s", "confirm": null}), "flush"),
            (json!({"action": "settle", "key": key, "outcome": "done", "output": 1}), "settle"),
            (
                json!({"action": "settle", "key": key, "outcome": "did_not_run", "output": null}),
                "settle",
            ),
            (json!({"action": "reload", "on": null, "why": "as planned"}), "reload"),
        ] {
            assert_eq!(read(body.to_string().as_bytes()).unwrap().0, name, "{body}");
        }
    }

    #[test]
    fn a_given_answer_is_kept_on_one_line() {
        let pretty = format!("{:#}", json!({ "content": [{ "text": "a  b" }] }));
        let given = given(&RawValue::from_string(pretty).unwrap());
        assert_eq!(given.content().unwrap().get(), r#"{"content":[{"text":"a  b"}]}"#);
    }
}
