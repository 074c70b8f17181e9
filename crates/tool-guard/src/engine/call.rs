//! A `tools/call` request of the client's, and its end.
use super::{
    failure::Failure,
    identity::{Client, Identity},
    unknowns::Equals,
};
use crate::wire::{
    jsonrpc::{self, Message, Token, string},
    params::{Meta, Params, Said, text},
};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::{
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tr_core::{
    Json, ToolCall, ToolOutcome,
    canonical::{Digest, Key},
    internal::lock,
};

/// A client's call: its line, and the positions of the parts that the guard may replace.
#[derive(Debug)]
pub(crate) struct McpCall {
    pub(crate) line: Bytes,
    pub(crate) tool: Box<str>,
    pub(crate) id: Token,
    id_range: Range<usize>,
    token: Option<(Token, Range<usize>)>,
    own_id_used: AtomicBool,
    /// Whether another open request of the client's has its id.
    pub(crate) is_id_taken: bool,
    /// Whether its version of MCP wants every result to name its type.
    pub(crate) wants_result_type: bool,
    answer: Mutex<Option<Answer>>,
    /// How its end is reported after its caller stopped waiting.
    pub(crate) trace: Trace,
}

/// The keys by which a call is found after it has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trace {
    /// The record that outlives the guard, if it has one.
    pub(crate) record: Option<Key>,
    /// The key that it shares with equal calls, if it may change something.
    pub(crate) equals: Option<Equals>,
    /// Whether its id holds for one credential.
    pub(crate) is_of_caller: bool,
    /// For how long the equal call had run that it joined.
    pub(crate) joined: Option<Duration>,
}

/// The server's answer to an attempt, unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) line: Bytes,
    pub(crate) id_range: Range<usize>,
    /// Only its id could be read: the guard can add nothing to it.
    pub(crate) opaque: bool,
}

/// How an attempt ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The server answered, or the host that ran the call told its end.
    Answered(Option<Answer>, ToolOutcome),
    /// No answer can come any more, for this reason.
    Failed(Failure),
    /// No answer or progress for this long.
    Overdue(Duration),
}

/// What the members of a request say, besides the call itself.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) call: McpCall,
    pub(crate) arguments: Json,
    /// The client's id by which a repeat is recognised.
    pub(crate) identity: Identity,
    /// The state that a continued call carries: with another state, the same key is another call.
    pub(crate) continues: Option<Digest>,
    pub(crate) traceparent: Option<Box<str>>,
    /// Other information of the client's about it.
    pub(crate) said: Said,
}

/// Why a `tools/call` request is refused before the tool is looked up.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It has no id, so no answer can be addressed.
    Notification,
    /// Its id is neither string nor number, or a number that readers parse differently.
    Id,
    /// The params are ambiguous or unreadable.
    Params(String),
}

/// A call without a name cannot be attributed to a tool, so nothing could be recorded for it.
const NAMELESS: &str = "params.name is missing: it names the tool to call";

impl Request {
    /// Reads a `tools/call` message of `line`.
    pub(crate) fn read(
        line: &Bytes,
        message: &Message<'_>,
        client: &Client,
    ) -> Result<Self, Refused> {
        let raw_id = message.id.ok_or(Refused::Notification)?;
        let id = Token::read(raw_id).ok_or(Refused::Id)?;
        let params: Params<'_> = part(message.params, "params")?;
        let tool = params.name.and_then(string);
        let tool = &*tool.ok_or_else(|| Refused::Params(NAMELESS.into()))?;
        let meta: Meta<'_> = part(params.meta, "params._meta")?;
        let token = meta
            .progress_token
            .and_then(|raw| Token::read(raw).map(|token| (token, jsonrpc::range(line, raw))));
        let call = McpCall {
            line: line.clone(),
            id_range: jsonrpc::range(line, raw_id),
            token,
            wants_result_type: meta.version.is_some(),
            ..McpCall::new(id, tool)
        };
        Ok(Self {
            call,
            arguments: params
                .arguments
                .map_or_else(Json::empty_object, |raw| raw.to_owned().into()),
            identity: client.identify(tool, key(&meta, client)?.as_deref(), &meta, params.meta),
            continues: continues(&params),
            said: meta.said(),
            traceparent: text(meta.traceparent),
        })
    }
}

/// The caller's key.
fn key(meta: &Meta<'_>, client: &Client) -> Result<Option<Box<str>>, Refused> {
    let bad = |_| Refused::Params("the header idempotency-key must be UTF-8 text".into());
    let header = client.header_key().transpose().map_err(bad)?;
    if header.is_some_and(str::is_empty) {
        return Err(Refused::Params("the header idempotency-key must not be empty".into()));
    }
    let Some(raw) = meta.idempotency_key else { return Ok(header.map(Into::into)) };
    let Some(key) = string(raw) else {
        return Err(Refused::Params("params._meta.idempotencyKey must be a string".into()));
    };
    if key.is_empty() {
        return Err(Refused::Params("params._meta.idempotencyKey must not be empty".into()));
    }
    if header.is_some_and(|header| header != key) {
        const WHY: &str = "params._meta.idempotencyKey and the header idempotency-key differ";
        return Err(Refused::Params(WHY.into()));
    }
    Ok(Some(key.into_owned().into()))
}

/// The state of the call that this one continues, which makes it a different call. Hashed as JSON, so that
/// no two pairs of state and responses are equal.
fn continues(params: &Params<'_>) -> Option<Digest> {
    let parts = [params.request_state, params.input_responses];
    let text = |part: Option<&RawValue>| part.map_or("null", RawValue::get).to_owned();
    let is_said = parts.iter().any(Option::is_some);
    is_said.then(|| Digest::of_bytes(format!("[{}]", parts.map(text).join(","))))
}

fn part<'l, T: serde::Deserialize<'l> + Default>(
    raw: Option<&'l RawValue>,
    name: &str,
) -> Result<T, Refused> {
    let Some(raw) = raw else { return Ok(T::default()) };
    jsonrpc::object(raw.get()).map_err(|error| Refused::Params(format!("{name}: {error}")))
}

impl McpCall {
    /// A call of this tool without a line, as of a host that runs it itself.
    pub(crate) fn new(id: Token, tool: &str) -> Self {
        Self {
            line: Bytes::new(),
            tool: tool.into(),
            id,
            id_range: 0..0,
            token: None,
            own_id_used: AtomicBool::new(false),
            is_id_taken: false,
            wants_result_type: false,
            answer: Mutex::new(None),
            trace: Trace::default(),
        }
    }

    /// The client's call behind a guarded call.
    pub(crate) fn of(call: &ToolCall) -> Option<&std::sync::Arc<Self>> {
        call.parts().attachment.get()
    }

    /// The client's id as JSON text.
    pub(crate) fn id_text(&self) -> &str {
        std::str::from_utf8(&self.line[self.id_range.clone()]).expect("a part of JSON text")
    }

    /// The client's progress token, and its JSON text.
    pub(crate) fn progress_token(&self) -> Option<(&Token, &str)> {
        let (token, range) = self.token.as_ref()?;
        Some((token, std::str::from_utf8(&self.line[range.clone()]).expect("a part of JSON text")))
    }

    /// The line under another id, which is also its progress token.
    pub(crate) fn line_as(&self, id: &str) -> Bytes {
        let mut parts = vec![(self.id_range.clone(), id)];
        parts.extend(self.token.iter().map(|(_, range)| (range.clone(), id)));
        parts.sort_by_key(|(range, _)| range.start);
        jsonrpc::splice(&self.line, &parts)
    }

    /// Whether the client's own id is still unused on the wire; it is used once.
    pub(crate) fn take_own_id(&self) -> bool {
        !self.own_id_used.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_own_id_used(&self) -> bool {
        self.own_id_used.load(Ordering::Relaxed)
    }

    /// Keeps the answer of the latest attempt, `None` while there is none, in place of that of an earlier one.
    pub(crate) fn keep(&self, answer: Option<Answer>) {
        *lock(&self.answer) = answer;
    }

    /// Whether the answer of the latest attempt must pass unchanged.
    pub(crate) fn is_opaque(&self) -> bool {
        lock(&self.answer).as_ref().is_some_and(|answer| answer.opaque)
    }

    /// The answer of the latest attempt, under the client's id.
    pub(crate) fn answer(&self) -> Option<Bytes> {
        let answer = lock(&self.answer).take()?;
        let theirs = serde_json::from_slice(&answer.line[answer.id_range.clone()]).ok();
        // The server may spell the client's id in its own way; that passes too.
        if theirs.and_then(Token::read).is_some_and(|theirs| theirs == self.id) {
            return Some(answer.line);
        }
        Some(jsonrpc::splice(&answer.line, &[(answer.id_range, self.id_text())]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key and what is continued, of a call with these members of its params.
    fn identity(key: &str, members: &str) -> (Identity, Option<Digest>) {
        let line = format!(
            r#"{{"id":1,"method":"tools/call","params":{{"name":"pay"{members},"_meta":{{"idempotencyKey":{key}}}}}}}"#
        );
        let line = Bytes::from(line);
        let message: Message<'_> = jsonrpc::object(std::str::from_utf8(&line).unwrap()).unwrap();
        let request = Request::read(&line, &message, &Client::default()).unwrap();
        (request.identity, request.continues)
    }

    #[test]
    fn key_and_state_are_told_apart_however_they_are_spelled() {
        let all = [
            identity(r#""a""#, ""),
            identity(r#""a""#, r#","requestState":"x""#),
            identity(r#""a""#, r#","inputResponses":"x""#),
            identity(r#""a""#, r#","requestState":"x","inputResponses":{}"#),
            // As key and state were joined once.
            identity(r#""a\n\"x\"""#, ""),
            identity(r#""a\n\"x\"\n{}""#, ""),
            identity(r#""a\n\"x\"""#, r#","inputResponses":{}"#),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one), "{one:?}");
        }
        assert_eq!(identity(r#""a""#, r#","requestState":"x""#), all[1]);
    }
}
