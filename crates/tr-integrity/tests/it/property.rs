//! Any session made by corrupting a valid one is repaired.
use crate::common::{FORMATS, of, reasoning, results, says, step, user};
use proptest::{collection::vec, prelude::*};
use serde_json::Value;
use tr_integrity::{Fault, Format, Message, Operation, Repair, Session, Transcript, Validator};

/// How many uses each step has, and whether the user says something behind it.
type Spec = Vec<(usize, bool)>;

fn session(format: Format, spec: &Spec, repeat_ids: bool) -> Vec<String> {
    let mut messages = vec![user("go")];
    for (number, &(count, talks)) in spec.iter().enumerate() {
        let mut said = if count == 0 {
            vec![says(&format!("step {number}"))]
        } else {
            let id =
                |n| if repeat_ids { format!("read:{n}") } else { format!("call_{number}_{n}") };
            let ids: Vec<_> = (0..count).map(id).collect();
            let texts: Vec<_> = (0..count).map(|n| format!("answer {number}.{n};")).collect();
            let mut said = step(format, &ids.iter().map(String::as_str).collect::<Vec<_>>());
            let pairs = ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), text.as_str()));
            said.extend(results(format, &pairs.collect::<Vec<_>>()));
            said
        };
        match format {
            Format::OpenAiResponses => think(&mut said, number),
            Format::Gemini if !repeat_ids => said.iter_mut().for_each(|content| {
                let signed = format!(r#"{{"thoughtSignature":"sig_{number}","functionCall""#);
                *content = content.replacen(r#"{"functionCall""#, &signed, 1);
            }),
            // Where ids would repeat, there are none: names and places pair.
            Format::Gemini => {
                said.iter_mut().for_each(|content| *content = without_ids(content));
            }
            _ => {}
        }
        messages.extend(said);
        // A step of Gemini's must follow the user.
        if talks || count == 0 && format == Format::Gemini {
            messages.push(user("more"));
        }
    }
    messages
}

/// Items have ids, and every other step begins with reasoning.
fn think(items: &mut Vec<String>, number: usize) {
    for (n, item) in items.iter_mut().enumerate() {
        *item = item.replacen('{', &format!(r#"{{"id":"it_{number}_{n}","#), 1);
    }
    if number.is_multiple_of(2) {
        items.insert(0, reasoning(&format!("rs_{number}")));
    }
}

fn without_ids(content: &str) -> String {
    (0..4)
        .fold(content.to_owned(), |content, n| content.replace(&format!(r#""id":"read:{n}","#), ""))
}

/// One corruption; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Corruption {
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    Move(usize, usize),
    Say(usize, &'static str),
    DropBlock(usize, usize),
    DoubleBlock(usize, usize),
    SwapBlocks(usize, usize),
    Rename(usize, usize),
    /// A use or a result loses its id.
    LoseId(usize, usize),
    /// What a result says stands under another name.
    Misname(usize, usize),
    Cut(usize),
}

fn corruption() -> impl Strategy<Value = Corruption> {
    use Corruption::*;
    let at = 0..64_usize;
    prop_oneof![
        at.clone().prop_map(Drop),
        at.clone().prop_map(Double),
        (at.clone(), at.clone()).prop_map(|(a, b)| Swap(a, b)),
        (at.clone(), at.clone()).prop_map(|(a, b)| Move(a, b)),
        (at.clone(), prop_oneof![Just("hm"), Just(""), Just(" ")]).prop_map(|(a, t)| Say(a, t)),
        (at.clone(), at.clone()).prop_map(|(a, b)| DropBlock(a, b)),
        (at.clone(), at.clone()).prop_map(|(a, b)| DoubleBlock(a, b)),
        (at.clone(), at.clone()).prop_map(|(a, b)| SwapBlocks(a, b)),
        (at.clone(), at.clone()).prop_map(|(a, b)| Rename(a, b)),
        (at.clone(), at.clone()).prop_map(|(a, b)| LoseId(a, b)),
        (at.clone(), at.clone()).prop_map(|(a, b)| Misname(a, b)),
        at.prop_map(Cut),
    ]
}

fn blocks(message: &mut Value) -> Option<&mut Vec<Value>> {
    let lists = ["tool_calls", "parts", "content"];
    let list = lists.into_iter().find(|list| message[list].is_array())?;
    message[list].as_array_mut().filter(|blocks| !blocks.is_empty())
}

/// A use or a result: a block, or the message.
fn part(message: &mut Value, n: usize) -> &mut Value {
    if blocks(message).is_none() {
        return message;
    }
    let blocks = blocks(message).expect("it has some");
    let at = n % blocks.len();
    &mut blocks[at]
}

fn remove(part: &mut Value, name: &str) -> Option<Value> {
    part.as_object_mut()?.remove(name)
}

impl Corruption {
    fn act(&self, messages: &mut Vec<Value>) {
        let len = messages.len();
        if len == 0 {
            return;
        }
        match *self {
            Self::Drop(at) => drop(messages.remove(at % len)),
            Self::Double(at) => messages.insert(at % len, messages[at % len].clone()),
            Self::Swap(a, b) => messages.swap(a % len, b % len),
            Self::Move(from, to) => {
                let message = messages.remove(from % len);
                messages.insert(to % len, message);
            }
            Self::Say(at, text) => {
                messages.insert(at % len, serde_json::json!({"role": "user", "content": text}));
            }
            Self::LoseId(at, n) => {
                let part = part(&mut messages[at % len], n);
                for name in ["id", "tool_use_id", "tool_call_id", "call_id"] {
                    remove(part, name);
                }
                for name in ["functionCall", "functionResponse"] {
                    remove(&mut part[name], "id");
                }
            }
            Self::Misname(at, n) => {
                let part = part(&mut messages[at % len], n);
                let is_result = part["type"] == "tool_result"
                    || part["type"] == "function_call_output"
                    || part["role"] == "tool";
                let name =
                    if part["type"] == "function_call_output" { "output" } else { "content" };
                if let Some(said) = is_result.then(|| remove(part, name)).flatten() {
                    part["contnt"] = said;
                }
            }
            Self::Cut(at) => messages.truncate(at % len + 1),
            Self::DropBlock(at, block) => {
                let Some(blocks) = blocks(&mut messages[at % len]) else { return };
                if blocks.len() > 1 {
                    blocks.remove(block % blocks.len());
                }
            }
            Self::DoubleBlock(at, block) => {
                let Some(blocks) = blocks(&mut messages[at % len]) else { return };
                let block = blocks[block % blocks.len()].clone();
                blocks.push(block);
            }
            Self::SwapBlocks(at, block) => {
                let Some(blocks) = blocks(&mut messages[at % len]) else { return };
                let last = blocks.len() - 1;
                blocks.swap(block % (last + 1), last);
            }
            Self::Rename(at, n) => {
                let message = &mut messages[at % len];
                for name in ["tool_call_id", "call_id"] {
                    if message[name].is_string() {
                        message[name] = format!("other_{}", n % 3).into();
                    }
                }
                let Some(blocks) = blocks(message) else { return };
                let at = n % blocks.len();
                let new_id = Value::from(format!("other_{}", n % 3));
                for name in ["/id", "/tool_use_id", "/functionCall/id", "/functionResponse/name"] {
                    if let Some(id) = blocks[at].pointer_mut(name) {
                        *id = new_id.clone();
                    }
                }
            }
        }
    }
}

fn corrupted(format: Format, spec: &Spec, repeat: bool, by: &[Corruption]) -> Transcript {
    let messages = session(format, spec, repeat);
    let mut messages: Vec<Value> =
        messages.iter().map(|raw| serde_json::from_str(raw).unwrap()).collect();
    by.iter().for_each(|corruption| corruption.act(&mut messages));
    let messages: Vec<_> = messages.iter().map(ToString::to_string).collect();
    of(format, &messages)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(tr_testkit::rounds(400, 30_000) as u32) })]

    #[test]
    fn any_corruption_is_repaired(
        spec in vec((0..4_usize, any::<bool>()), 1..7),
        repeat: bool,
        by in vec(corruption(), 0..6),
        close: bool,
    ) {
        for format in FORMATS {
            let transcript = corrupted(format, &spec, repeat, &by);
            let repair = if close { Repair::preserve().close_tail() } else { Repair::preserve() };

            let plan = repair.plan(&transcript);
            let is_empty = plan.is_empty();
            let mut repaired = transcript.clone();
            let _ = plan.apply(&mut repaired).unwrap();
            let validator = Validator::of(&repaired);
            prop_assert!(validator.is_valid(), "{:?}\n{}\n{}", validator.findings(), transcript.to_json(), repaired.to_json());
            prop_assert!(!close || !validator.waits());
            // A plan without actions changes nothing; one more repair neither.
            prop_assert_eq!(is_empty, transcript.to_json() == repaired.to_json());
            let again = repair.plan(&repaired);
            prop_assert!(again.is_empty(), "{:?}\n{}\n{}", again.actions(), transcript.to_json(), repaired.to_json());
            // What a valid session says stays as it is.
            if Validator::of(&transcript).findings().is_empty() && !close {
                prop_assert!(is_empty, "{}", transcript.to_json());
            }
            // What the model thought stays as it is, or goes.
            for message in repaired.messages() {
                let known = || transcript.messages().iter().any(|other| other.raw() == message.raw());
                prop_assert!(!message.raw().contains("encrypted_content") || known());
            }
            // No completed result is lost, and the text can be read again.
            let json = repaired.to_json();
            for answer in transcript.to_json().split('"').filter(|text| text.starts_with("answer ")) {
                prop_assert!(json.contains(answer), "{answer} is lost: {json}");
            }
            prop_assert_eq!(Transcript::read_as(format, &json).unwrap().to_json(), json);
        }
    }

    /// What was found and forgotten is found again, and nothing else.
    #[test]
    fn a_rollback_is_as_if_nothing_had_come(
        spec in vec((0..4_usize, any::<bool>()), 1..7),
        repeat: bool,
        by in vec(corruption(), 0..6),
        at in 0..64_usize,
    ) {
        for format in FORMATS {
            let whole = corrupted(format, &spec, repeat, &by);
            let raw: Vec<_> = whole.messages().iter().map(Message::raw).collect();
            let (before, behind) = raw.split_at(at % (raw.len() + 1));
            let fresh = Validator::of(&of(format, before));
            let mut session = Session::load("s", of(format, before));
            for _ in 0..2 {
                let checkpoint = session.checkpoint(Operation::Manual, 0);
                behind.iter().for_each(|raw| session.push(format.read(*raw).unwrap()));
                let all = Validator::of(&whole);
                prop_assert_eq!(session.validator().findings(), all.findings(), "{}", whole.to_json());
                prop_assert_eq!(session.validator().is_valid(), all.is_valid());
                session.rollback(&checkpoint.id, 0).unwrap();
                let now = session.validator();
                prop_assert_eq!(now.findings(), fresh.findings(), "{}", whole.to_json());
                prop_assert_eq!((now.waits(), now.is_valid()), (fresh.waits(), fresh.is_valid()));
                prop_assert!(now.pending().eq(fresh.pending()), "{}", whole.to_json());
            }
        }
    }

    /// 002's algorithm: rules 1 and 2 hold after it, and it is done after one run.
    #[test]
    fn remove_leaves_rules_one_and_two_whole(
        spec in vec((0..4_usize, any::<bool>()), 1..7),
        by in vec(corruption(), 0..6),
    ) {
        // 002 compares sets of ids: it does not see that a use is there twice.
        let twice = |format, corruption: &Corruption| match corruption {
            Corruption::DoubleBlock(..) | Corruption::Rename(..) | Corruption::LoseId(..) => true,
            Corruption::Double(..) => format == Format::OpenAiResponses,
            _ => false,
        };
        for format in FORMATS {
            let by: Vec<_> = by.iter().filter(|by| !twice(format, by)).cloned().collect();
            let mut transcript = corrupted(format, &spec, false, &by);
            let _ = Repair::remove().plan(&transcript).apply(&mut transcript).unwrap();
            for finding in Validator::of(&transcript).findings() {
                let paired = finding.fault.rule() == 1 || finding.fault.rule() == 2;
                prop_assert!(!paired, "{finding:?}\n{}", transcript.to_json());
            }
            prop_assert!(Repair::remove().plan(&transcript).is_empty());
            prop_assert!(Transcript::read_as(format, &transcript.to_json()).is_ok());
        }
    }
}

/// The generator makes valid sessions, and the corruptions do corrupt them.
#[test]
fn the_generator_is_worth_its_name() {
    let spec = vec![(2, true), (0, false), (3, false)];
    for format in FORMATS {
        let whole = corrupted(format, &spec, false, &[]);
        assert!(Validator::of(&whole).findings().is_empty());
        let broken = corrupted(
            format,
            &spec,
            false,
            &[Corruption::Drop(if format == Format::OpenAiResponses { 2 } else { 1 })],
        );
        let findings = Validator::of(&broken);
        let fault = if format == Format::OpenAiResponses {
            Fault::OrphanedResult
        } else {
            Fault::ResultWithoutAssistant
        };
        assert_eq!(findings.findings()[0].fault, fault);
    }
}
