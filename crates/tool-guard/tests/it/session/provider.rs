//! What a provider would say to a session: a second opinion, which shares no code with ours.
//!
//! Written from the providers' reference pages and from recorded answers of their servers, and
//! from what the agents' own readers do with a file. Where those say nothing certain, it is silent.
pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod lines;
pub(crate) mod openai;

use serde_json::{Map, Value};

/// How a file holds its messages, and whose they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Form {
    Anthropic,
    Chat,
    Responses,
    Gemini,
    AnthropicLines,
    ChatLines,
    ClaudeCode,
    Pi,
    Codex,
}

/// What the provider would say.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The rules of calls, results, turns and roles that are broken, each with its place.
    pub(crate) faults: Vec<String>,
    /// Single members that the provider refuses: a name too long, arguments that are no object.
    pub(crate) members: Vec<String>,
    /// The calls of the last step that have no result yet: an agent may be at them.
    pub(crate) open: Vec<String>,
    /// Whether a call is in a message that calls nothing: which turn it is of, nobody can say.
    is_misplaced: bool,
    /// Lines that are no record.
    pub(crate) broken: usize,
}

impl Form {
    pub(crate) const ALL: [Self; 9] = [
        Self::Anthropic,
        Self::Chat,
        Self::Responses,
        Self::Gemini,
        Self::AnthropicLines,
        Self::ChatLines,
        Self::ClaudeCode,
        Self::Pi,
        Self::Codex,
    ];

    /// Whether each record is a line of its own.
    pub(crate) fn is_lines(self) -> bool {
        !matches!(self, Self::Anthropic | Self::Chat | Self::Responses | Self::Gemini)
    }

    /// The member of a request that has the messages.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Responses => "input",
            Self::Gemini => "contents",
            _ => "messages",
        }
    }
}

/// What is told of a file that is meant to be of this form.
pub(crate) fn judge(form: Form, bytes: &[u8]) -> Told {
    if form.is_lines() {
        let (records, broken) = lines::records(bytes);
        return Told { broken, ..lines::judge(form, &records) };
    }
    let whole: Value = match serde_json::from_slice(bytes) {
        Ok(whole) => whole,
        Err(error) => return Told::fault(format!("no JSON: {error}")),
    };
    let messages = whole.as_array().or_else(|| whole[form.member()].as_array());
    let Some(messages) = messages else { return Told::fault("no messages".into()) };
    match form {
        // A session that is kept need not end as a request must.
        Form::Anthropic if whole["max_tokens"].is_null() => anthropic::conversation(messages),
        Form::Anthropic => anthropic::request(messages),
        Form::Chat => openai::chat(messages),
        Form::Responses => openai::responses(messages),
        _ => gemini::contents(messages),
    }
}

impl Told {
    fn fault(fault: String) -> Self {
        Self { faults: vec![fault], ..Self::default() }
    }

    fn wrong(&mut self, place: impl std::fmt::Display, what: &str) {
        self.faults.push(format!("{place}: {what}"));
    }

    fn member(&mut self, place: impl std::fmt::Display, what: &str) {
        self.members.push(format!("{place}: {what}"));
    }

    /// Where calls are misplaced, what follows from it is told with that.
    fn settled(mut self) -> Self {
        if self.is_misplaced {
            self.members.append(&mut self.faults);
        }
        self
    }

    fn is_fine(&self) -> bool {
        self.faults.is_empty() && self.members.is_empty()
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or("")
}

fn object(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object()
}

/// Whether all are letters, digits, `_` and `-`, and it has between one and `most` of them.
fn is_plain(name: &str, most: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=most).contains(&name.len()) && name.bytes().all(plain)
}

#[test]
fn the_second_opinion_knows_the_well_known_refusals() {
    use serde_json::json;
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "pay", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let says = |text: &str| json!({"type": "text", "text": text});
    let user = |content: Value| json!({"role": "user", "content": content});
    let model = |content: Value| json!({"role": "assistant", "content": content});
    let go = user(json!("go"));
    let is_fine =
        |messages: Value| judge(Form::Anthropic, messages.to_string().as_bytes()).is_fine();
    assert!(is_fine(json!([go, model(json!([says("a"), call("1")])), user(json!([result("1")]))])));
    // As Anthropic's server answered to requests that were recorded.
    assert!(!is_fine(json!([
        go,
        model(json!([call("1"), says("a")])),
        user(json!([result("1")]))
    ])));
    assert!(!is_fine(json!([
        go,
        model(json!([call("1")])),
        user(json!([says("a"), result("1")]))
    ])));
    let split = json!([result("1"), says("a"), result("2")]);
    assert!(!is_fine(json!([go, model(json!([call("1"), call("2")])), user(split)])));
    let reversed = json!([result("2"), result("1"), says("a")]);
    assert!(is_fine(json!([go, model(json!([call("1"), call("2")])), user(reversed)])));
    let twice = json!([result("1"), result("1")]);
    assert!(!is_fine(json!([go, model(json!([call("1")])), user(twice)])));
    assert!(!is_fine(json!([go, user(json!([result("1")]))])));
    assert!(!is_fine(json!([go, model(json!([call("1")])), go])));
    let request = |messages: Value| json!({"model": "m", "max_tokens": 9, "messages": messages});
    assert!(!is_fine(request(json!([go, model(json!("yes \n"))]))));
    assert!(is_fine(json!([go, model(json!("yes \n")), go])));
    let effort = json!({"role": "system", "content": []});
    assert!(is_fine(json!([go, model(json!([call("1")])), effort, user(json!([result("1")]))])));
    assert!(!is_fine(request(json!([effort, go]))));
}
