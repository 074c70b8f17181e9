//! The protocol: what a host reports, and what it is answered. `schemas/decide-event.schema.json` and
//! `schemas/decide-answer.schema.json` describe both.
use crate::mcp::message::{self, Token, present};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use tr_core::{Effect, Ran};

/// A line of the host's.
#[derive(Debug)]
pub(super) enum Event<'l> {
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
pub(super) struct Before<'l> {
    #[serde(rename = "event")]
    _event: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    pub(super) tool: Box<str>,
    #[serde(borrow, default)]
    pub(super) params: Option<&'l RawValue>,
    pub(super) call: Option<Box<str>>,
    pub(super) session: Option<Box<str>>,
    pub(super) turn: Option<Box<str>>,
    pub(super) key: Option<Box<str>>,
    pub(super) effect: Option<Effect>,
    pub(super) model: Option<Box<str>>,
    pub(super) client: Option<Box<str>>,
    pub(super) traceparent: Option<Box<str>>,
    /// Other members, for the rules of `[identity]`.
    #[serde(default)]
    pub(super) meta: serde_json::Map<String, serde_json::Value>,
}

/// The end of a call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct After<'l> {
    #[serde(rename = "event")]
    _event: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    before: Option<&'l RawValue>,
    pub(super) call: Option<Box<str>>,
    pub(super) session: Option<Box<str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) output: Option<&'l RawValue>,
    #[serde(default)]
    pub(super) is_error: bool,
    pub(super) error: Option<Box<str>>,
    pub(super) ran: Option<Ran>,
}

/// The end of a turn.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TurnEnd {
    #[serde(rename = "event")]
    _event: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    pub(super) session: Box<str>,
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
pub(super) struct Fault {
    /// The line's id, if it has one that can be read.
    pub(super) id: Option<Token>,
    pub(super) error: String,
}

const ID: &str = "id must be a string or a number: the answer carries it";

impl<'l> Event<'l> {
    /// Reads a line, with its id.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn read(line: &'l [u8]) -> Result<(Token, Self), Fault> {
        let fault = |id: Option<&Token>, error: String| Fault { id: id.cloned(), error };
        let Ok(text) = str::from_utf8(line) else {
            return Err(fault(None, "the line is not UTF-8".into()));
        };
        let text = text.trim();
        let Head { id, event } = message::object(text)
            .map_err(|error| fault(None, format!("the line is no JSON object: {error}")))?;
        let id = id.and_then(Token::read).ok_or_else(|| fault(None, ID.into()))?;
        let bad = |error: serde_json::Error| fault(Some(&id), error.to_string());
        let event = match event.as_deref() {
            Some("before") => Self::Before(message::object(text).map_err(bad)?),
            Some("after") => Self::After(message::object(text).map_err(bad)?),
            Some("turn_end") => Self::TurnEnd(message::object(text).map_err(bad)?),
            Some(other) => {
                let other = tr_core::printable(other).to_string();
                return Err(fault(
                    Some(&id),
                    format!("unknown event {other:?}: expected before, after or turn_end"),
                ));
            }
            None => {
                return Err(fault(Some(&id), "event is missing: before, after or turn_end".into()));
            }
        };
        event.check().map_err(|error| fault(Some(&id), error.into()))?;
        Ok((id, event))
    }

    /// What its members must be, beyond their types.
    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Before(before) => before.check(),
            Self::After(after) => after.check(),
            Self::TurnEnd(TurnEnd { session, .. }) if session.is_empty() => {
                Err("session must not be empty")
            }
            Self::TurnEnd(_) => Ok(()),
        }
    }
}

impl Before<'_> {
    fn check(&self) -> Result<(), &'static str> {
        if self.tool.is_empty() {
            return Err("tool must not be empty");
        }
        if self.params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err("params must be an object");
        }
        let texts = [&self.call, &self.session, &self.turn, &self.key];
        if texts.into_iter().flatten().any(|text| text.is_empty()) {
            return Err("call, session, turn and key must not be empty: leave them out");
        }
        Ok(())
    }
}

impl After<'_> {
    /// The id of the `before` that it belongs to, if it names that.
    pub(super) fn before(&self) -> Option<Token> {
        self.before.and_then(Token::read)
    }

    fn check(&self) -> Result<(), &'static str> {
        match (self.before, &self.call) {
            (Some(before), _) if Token::read(before).is_none() => {
                return Err("before must be the id of the line that began the call");
            }
            (None, None) => return Err("before or call must name the call that has ended"),
            _ => {}
        }
        if self.output.is_some() && self.error.is_some() {
            return Err("output and error exclude each other: a failure's text is its error");
        }
        Ok(())
    }
}

/// What the host is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Decision {
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
pub(super) struct Answer {
    pub(super) id: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ran: Option<Ran>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retriable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recorded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Answer {
    /// A decision about the line with this id.
    pub(super) fn new(id: &Token, decision: Decision) -> Self {
        Self { id: raw(id), decision: Some(decision), ..Self::default() }
    }

    /// The call is not to be made, since this happened to it and not to an earlier one.
    pub(super) fn block(id: &Token, code: &str, reason: impl Into<String>) -> Self {
        Self {
            code: Some(code.into()),
            ran: Some(Ran::No),
            retriable: Some(false),
            reason: Some(reason.into()),
            ..Self::new(id, Decision::Block)
        }
    }

    /// The line cannot be used.
    pub(super) fn fault(fault: Fault) -> Self {
        let id = fault.id.filter(|id| !matches!(id, Token::Text(text) if text.is_empty()));
        // Without an id it is null.
        let id = id.as_ref().map(raw).unwrap_or_default();
        Self { id, error: Some(fault.error), ..Self::default() }
    }

    /// As a line.
    pub(super) fn line(&self) -> String {
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
