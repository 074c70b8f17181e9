//! The protocol: what a host reports, and what it is answered. `schemas/decide-event.schema.json` and
//! `schemas/decide-answer.schema.json` describe both.
use crate::wire::jsonrpc::{self, Token, present};
use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use tr_core::{Effect, Ran, printable};

/// A line of the host's.
#[derive(Debug)]
pub(crate) enum Event<'l> {
    /// It is about to make a call.
    Before(Box<Before<'l>>),
    /// A call has ended.
    After(After<'l>),
    /// The turn of a session is over.
    TurnEnd(TurnEnd),
}

/// A call that the host is about to make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Before<'l> {
    #[serde(rename = "event")]
    _event: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    pub(crate) tool: Box<str>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'l RawValue>,
    pub(crate) call: Option<Box<str>>,
    pub(crate) session: Option<Box<str>>,
    pub(crate) turn: Option<Box<str>>,
    pub(crate) key: Option<Box<str>>,
    pub(crate) effect: Option<Effect>,
    pub(crate) model: Option<Box<str>>,
    pub(crate) client: Option<Box<str>>,
    pub(crate) traceparent: Option<Box<str>>,
    /// Other members, for the rules of `[identity]`.
    #[serde(default)]
    pub(crate) meta: serde_json::Map<String, serde_json::Value>,
}

/// The end of a call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct After<'l> {
    #[serde(rename = "event")]
    _event: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    before: Option<&'l RawValue>,
    pub(crate) call: Option<Box<str>>,
    pub(crate) session: Option<Box<str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) output: Option<&'l RawValue>,
    #[serde(default)]
    pub(crate) is_error: bool,
    pub(crate) error: Option<Box<str>>,
    pub(crate) ran: Option<Ran>,
}

impl After<'_> {
    /// Whether the call has failed.
    pub(crate) fn is_failure(&self) -> bool {
        self.is_error || self.error.is_some()
    }
}

/// The end of a turn.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TurnEnd {
    #[serde(rename = "event")]
    _event: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    pub(crate) session: Box<str>,
}

/// What a line says besides its event.
#[derive(Deserialize)]
struct Head<'l> {
    #[serde(borrow, default)]
    id: Option<&'l RawValue>,
    event: Option<Box<str>>,
}

/// Why a line cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The line's id, if it has one that can be read.
    pub(crate) id: Option<Token>,
    pub(crate) error: String,
}

const ID: &str = "id must be a string or a number: the answer carries it";

impl<'l> Event<'l> {
    /// Reads a line, with its id.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(crate) fn read(line: &'l [u8]) -> Result<(Token, Self), Fault> {
        let unnamed = |error: String| Fault { id: None, error };
        let text = str::from_utf8(line).map_err(|_| unnamed("the line is not UTF-8".into()))?;
        let text = text.trim();
        let Head { id, event } = jsonrpc::object(text)
            .map_err(|error| unnamed(format!("the line is no JSON object: {error}")))?;
        let id = id.and_then(Token::read).ok_or_else(|| unnamed(ID.into()))?;
        match Self::of(event.as_deref(), text) {
            Ok(event) => Ok((id, event)),
            Err(error) => Err(Fault { id: Some(id), error: error.to_string() }),
        }
    }

    /// The event of this name, whose members are what they must be.
    fn of(name: Option<&str>, text: &'l str) -> anyhow::Result<Self> {
        Ok(match name.context("event is missing: before, after or turn_end")? {
            "before" => Self::Before(jsonrpc::object::<Box<Before<'_>>>(text)?.checked()?),
            "after" => Self::After(jsonrpc::object::<After<'_>>(text)?.checked()?),
            "turn_end" => Self::TurnEnd(jsonrpc::object::<TurnEnd>(text)?.checked()?),
            other => {
                bail!("unknown event {:?}: expected before, after or turn_end", printable(other))
            }
        })
    }
}

impl Before<'_> {
    fn checked(self: Box<Self>) -> anyhow::Result<Box<Self>> {
        ensure!(!self.tool.is_empty(), "tool must not be empty");
        let is_object = self.params.is_none_or(|params| params.get().starts_with('{'));
        ensure!(is_object, "params must be an object");
        let texts = [&self.call, &self.session, &self.turn, &self.key];
        let is_empty = texts.into_iter().flatten().any(|text| text.is_empty());
        ensure!(!is_empty, "call, session, turn and key must not be empty: leave them out");
        Ok(self)
    }
}

impl TurnEnd {
    fn checked(self) -> anyhow::Result<Self> {
        ensure!(!self.session.is_empty(), "session must not be empty");
        Ok(self)
    }
}

impl After<'_> {
    /// The id of the `before` that it belongs to, if it names that.
    pub(crate) fn before(&self) -> Option<Token> {
        self.before.and_then(Token::read)
    }

    fn checked(self) -> anyhow::Result<Self> {
        let is_id = self.before.is_none() || self.before().is_some();
        ensure!(is_id, "before must be the id of the line that began the call");
        let is_named = self.before.is_some() || self.call.is_some();
        ensure!(is_named, "before or call must name the call that has ended");
        let is_one = self.output.is_none() || self.error.is_none();
        ensure!(is_one, "output and error exclude each other: a failure's text is its error");
        Ok(self)
    }
}

/// What the host is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    /// Make the call.
    Allow,
    /// Make the call with these params.
    Rewrite,
    /// Do not make the call; the model gets the reason.
    Block,
    /// Add the notes below the answer, for the model.
    Note,
    /// Nothing.
    None,
}

/// An answer to a line.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Answer {
    pub(crate) id: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ran: Option<Ran>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retriable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recorded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Answer {
    /// A decision about the line with this id.
    pub(crate) fn new(id: &Token, decision: Decision) -> Self {
        Self { id: raw(id), decision: Some(decision), ..Self::default() }
    }

    /// The call is not to be made, since this happened to it and not to an earlier one.
    pub(crate) fn block(id: &Token, code: &str, reason: impl Into<String>) -> Self {
        Self {
            code: Some(code.into()),
            ran: Some(Ran::No),
            retriable: Some(false),
            reason: Some(reason.into()),
            ..Self::new(id, Decision::Block)
        }
    }

    /// The line cannot be used.
    pub(crate) fn fault(fault: Fault) -> Self {
        let id = fault.id.filter(|id| !matches!(id, Token::Text(text) if text.is_empty()));
        // Without an id it is null.
        let id = id.as_ref().map(raw).unwrap_or_default();
        Self { id, error: Some(fault.error), ..Self::default() }
    }

    /// As a line.
    pub(crate) fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("text has a JSON form");
        // A recorded result may have line breaks between its members.
        if line.contains(['\n', '\r']) {
            line = tr_core::one_line(&line).into_owned();
        }
        line.push('\n');
        line
    }
}

fn raw(id: &Token) -> Box<RawValue> {
    RawValue::from_string(id.to_json()).expect("made of JSON")
}

#[cfg(test)]
mod tests;
