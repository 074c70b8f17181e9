//! The requests that change a stack.
use serde::Deserialize;
use serde_json::value::RawValue;
use tr_core::canonical::{self, Key};

/// A valid request.
#[derive(Debug)]
pub(super) enum Order {
    Breaker { name: String, what: ToBreaker },
    Flush { whose: Whose, confirm: Option<u64> },
    Settle { key: Key, epoch: Option<u64>, how: How, force: bool },
    Switch { on: bool },
    Reload,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToBreaker {
    Reset,
    ForceOpen,
    Disable,
    Shadow,
    Enforce,
}

#[derive(Debug)]
pub(super) enum Whose {
    Key(Key),
    Session(String),
    Tool(String),
}

#[derive(Debug)]
pub(super) enum How {
    DidNotRun,
    Done(Box<RawValue>),
}

impl Order {
    /// The action's name.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Breaker { what, .. } => match what {
                ToBreaker::Reset => "reset",
                ToBreaker::ForceOpen => "force_open",
                ToBreaker::Disable => "disable",
                ToBreaker::Shadow => "shadow",
                ToBreaker::Enforce => "enforce",
            },
            Self::Flush { .. } => "flush",
            Self::Settle { .. } => "settle",
            Self::Switch { .. } => "switch",
            Self::Reload => "reload",
        }
    }
}

/// All members that a request may have; the action decides which it needs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Form {
    action: Option<String>,
    breaker: Option<String>,
    key: Option<String>,
    session: Option<String>,
    tool: Option<String>,
    confirm: Option<u64>,
    epoch: Option<u64>,
    outcome: Option<String>,
    output: Option<Box<RawValue>>,
    force: Option<bool>,
    on: Option<bool>,
}

const ACTIONS: &str = "`reset`, `force_open`, `disable`, `shadow`, `enforce`, `flush`, `settle`, `switch` or `reload`";

/// Reads a request.
///
/// # Errors
/// Names everything that is wrong with it.
pub(super) fn read(body: &[u8]) -> Result<Order, String> {
    let expected =
        format!("expected an object with `action` ({ACTIONS}) and that action's members");
    // serde would read an array as the members in their order.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(expected);
    }
    let form: Form =
        serde_json::from_slice(body).map_err(|error| format!("{expected}: {error}"))?;
    let action = form.action.clone().unwrap_or_default();
    let members = Members { present: form.present(), faults: Vec::new() };
    match action.as_str() {
        "reset" => form.breaker(ToBreaker::Reset, members),
        "force_open" => form.breaker(ToBreaker::ForceOpen, members),
        "disable" => form.breaker(ToBreaker::Disable, members),
        "shadow" => form.breaker(ToBreaker::Shadow, members),
        "enforce" => form.breaker(ToBreaker::Enforce, members),
        "flush" => form.flush(members),
        "settle" => form.settle(members),
        "switch" => form.switch(members),
        "reload" => {
            let mut members = members;
            members.only(&[]);
            members.finish(Some(Order::Reload))
        }
        _ => Err(format!("`action`: expected {ACTIONS}, found {action:?}")),
    }
}

/// Which members there are, and what is wrong with them.
struct Members {
    present: Vec<&'static str>,
    faults: Vec<String>,
}

impl Members {
    /// Refuses all but these.
    fn only(&mut self, names: &[&str]) {
        for name in self.present.iter().filter(|name| !names.contains(*name)) {
            self.faults.push(format!("`{name}` does not apply to this action"));
        }
    }

    fn refuse<T>(&mut self, why: impl Into<String>) -> Option<T> {
        self.faults.push(why.into());
        None
    }

    fn finish(self, order: Option<Order>) -> Result<Order, String> {
        match order.filter(|_| self.faults.is_empty()) {
            Some(order) => Ok(order),
            None => Err(self.faults.join("; ")),
        }
    }
}

impl Form {
    fn present(&self) -> Vec<&'static str> {
        let all = [
            ("breaker", self.breaker.is_some()),
            ("key", self.key.is_some()),
            ("session", self.session.is_some()),
            ("tool", self.tool.is_some()),
            ("confirm", self.confirm.is_some()),
            ("epoch", self.epoch.is_some()),
            ("outcome", self.outcome.is_some()),
            ("output", self.output.is_some()),
            ("force", self.force.is_some()),
            ("on", self.on.is_some()),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }

    fn breaker(self, what: ToBreaker, mut members: Members) -> Result<Order, String> {
        members.only(&["breaker"]);
        let name =
            self.breaker.or_else(|| members.refuse("`breaker`: required, the name of the breaker"));
        members.finish(name.map(|name| Order::Breaker { name, what }))
    }

    fn flush(self, mut members: Members) -> Result<Order, String> {
        members.only(&["key", "session", "tool", "confirm"]);
        let key = self.key.as_deref().map(|key| read_key(key, &mut members));
        let whose = match (key, self.session, self.tool) {
            (Some(key), None, None) => key.map(Whose::Key),
            (None, Some(session), None) => Some(Whose::Session(session)),
            (None, None, Some(tool)) => Some(Whose::Tool(tool)),
            _ => members.refuse("give one of `key`, `session` and `tool`"),
        };
        members.finish(whose.map(|whose| Order::Flush { whose, confirm: self.confirm }))
    }

    fn settle(self, mut members: Members) -> Result<Order, String> {
        members.only(&["key", "epoch", "outcome", "output", "force"]);
        let key = match self.key.as_deref() {
            Some(key) => read_key(key, &mut members),
            None => members.refuse("`key`: required, the key of the record as GET shows it"),
        };
        let how = match (self.outcome.as_deref(), self.output) {
            (Some("did_not_run"), None) => Some(How::DidNotRun),
            (Some("did_not_run"), Some(_)) => {
                members.refuse("`output`: a call that did not run has none")
            }
            (Some("done"), Some(output)) => match canonical::to_string(output.get()) {
                Ok(_) => Some(How::Done(output)),
                Err(why) => members.refuse(format!("`output`: {why}")),
            },
            (Some("done"), None) => {
                members.refuse("`output`: required, the answer that repeated calls get")
            }
            _ => members.refuse("`outcome`: expected `did_not_run` or `done`"),
        };
        let (epoch, force) = (self.epoch, self.force == Some(true));
        members.finish(key.zip(how).map(|(key, how)| Order::Settle { key, epoch, how, force }))
    }

    fn switch(self, mut members: Members) -> Result<Order, String> {
        members.only(&["on"]);
        let on = self.on.or_else(|| members.refuse("`on`: expected true or false"));
        members.finish(on.map(|on| Order::Switch { on }))
    }
}

fn read_key(key: &str, members: &mut Members) -> Option<Key> {
    let read = key.parse().ok();
    read.or_else(|| members.refuse("`key`: expected 64 hexadecimal digits, as GET shows them"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn faults(body: &Value) -> String {
        read(body.to_string().as_bytes()).unwrap_err()
    }

    #[test]
    fn every_fault_of_an_order_is_named() {
        assert!(faults(&json!({})).starts_with("`action`: expected `reset`, "));
        assert!(faults(&json!({"action": "explode"})).ends_with("found \"explode\""));
        assert!(faults(&json!([])).contains("expected an object with `action`"));
        assert!(
            faults(&json!({"action": "reset", "braeker": "x"})).contains("unknown field `braeker`")
        );
        assert_eq!(
            faults(&json!({"action": "reset", "key": "k", "on": true})),
            "`key` does not apply to this action; `on` does not apply to this action; `breaker`: required, the name of the breaker"
        );
        let one = "give one of `key`, `session` and `tool`";
        assert_eq!(faults(&json!({"action": "flush"})), one);
        assert_eq!(faults(&json!({"action": "flush", "tool": "a", "session": "b"})), one);
        assert_eq!(
            faults(&json!({"action": "settle", "key": "xyz", "outcome": "done"})),
            "`key`: expected 64 hexadecimal digits, as GET shows them; `output`: required, the answer that repeated calls get"
        );
        let doubled = r#"{"action":"settle","key":"xyz","outcome":"done","output":{"a":1,"a":2}}"#;
        assert!(read(doubled.as_bytes()).unwrap_err().contains("`output`: duplicate member name"));
        assert_eq!(faults(&json!({"action": "switch"})), "`on`: expected true or false");
    }
}
