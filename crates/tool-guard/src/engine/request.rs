//! A `tools/call` request of the client's, as it is read.
use super::{
    call::McpCall,
    identity::{Client, Identity},
};
use crate::wire::{
    jsonrpc::{self, Message, Token, string},
    params::{Meta, Params, Said, text},
};
use bytes::Bytes;
use serde_json::value::RawValue;
use tr_core::{Json, canonical::Digest};

/// What the members of a request say, besides the call itself.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) call: McpCall,
    pub(crate) arguments: Json,
    /// The client's id by which a repeat is recognized.
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
    let header = client.via.key.as_ref().map(Result::as_deref).transpose().map_err(bad)?;
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
