//! What both forms say of an outcome.
use crate::{
    Extra,
    read::{Source, Words as _},
};
use serde_json::{Map, Value};
use std::{error::Error, time::Duration};
use tr_core::{
    BreakerState, DefaultPolicy, End, Json, Ran, RequestPolicy, ResponsePolicy, Status, ToolCall,
    ToolOutcome, root_cause,
};

/// What both forms say of a failed call.
pub(crate) struct Failed {
    pub(crate) status: Status,
    pub(crate) code: Box<str>,
    pub(crate) message: Box<str>,
    pub(crate) retriable: bool,
    pub(crate) terminal: bool,
    pub(crate) ran: Ran,
    pub(crate) recorded: Option<bool>,
    pub(crate) breaker: Option<BreakerState>,
    pub(crate) details: Option<Json>,
    pub(crate) cause: Option<Box<str>>,
}

impl Failed {
    /// Of `call`'s end, unless it is a success.
    pub(crate) fn of(call: &ToolCall, end: End<'_, ToolOutcome>) -> Option<Self> {
        let found = DefaultPolicy.classify(end);
        let (effect, repeat_safe) =
            (DefaultPolicy.effect(call), DefaultPolicy.is_repeat_safe(call));
        let retriable = found.is_retriable(effect, repeat_safe);
        let mut status = Status::of(found, retriable);
        let tool_error = end.ok().map(|outcome| outcome.error()).unwrap_or_default();
        let (said, notes) = match (end, tool_error) {
            (Err(error), _) => (error.to_string(), &[][..]),
            (Ok(outcome), Some(error)) => (error.message.to_string(), &*outcome.parts().notes),
            (Ok(_), None) => return None,
        };
        let warning = found.warning(effect, repeat_safe);
        let notes = notes.iter().map(|note| &**note).chain(warning);
        let message = with_notes(said, notes);
        match status {
            // The tool's own code for it; what counts is that it was retried.
            Status::Timeout
                if tool_error.is_some() && found.verdict.is_transient() && found.exhausted =>
            {
                status = Status::RetryExhausted;
            }
            // A failure that was judged to be as good as a success is a failure still.
            Status::Success => status = Status::Error,
            _ => {}
        }
        Some(Self {
            status,
            // The tool's own code says more than the class that it belongs to.
            code: tool_error.map_or_else(|| found.code.into(), |error| error.code.clone()),
            retriable,
            terminal: !retriable || found.exhausted || status == Status::RetryExhausted,
            ran: found.ran,
            recorded: end.ok().filter(|outcome| !outcome.recorded()).map(|_| false),
            breaker: tool_error.and_then(|error| error.breaker),
            details: tool_error.and_then(|error| error.details.clone()),
            cause: end.err().and_then(|error| cause(error, &message)),
            message: message.into(),
        })
    }
}

/// The model reads one text: what layers told it follows the tool's own words, on lines of its own.
fn with_notes<'n>(message: String, notes: impl Iterator<Item = &'n str>) -> String {
    notes.fold(message, |text, note| match text.as_str() {
        "" => note.to_owned(),
        text => format!("{text}\n{note}"),
    })
}

/// What really happened, where the outermost message does not say it.
fn cause(error: &(dyn Error + Send + Sync + 'static), message: &str) -> Option<Box<str>> {
    let cause = root_cause(error).to_string();
    (!message.contains(&cause)).then(|| cause.into())
}

/// The metadata of an outcome: the tool's own, and ours where the tool has no member of that name.
///
/// What a failure says of `ran` and `recorded`, and the notes, stand in its error.
pub(crate) fn metadata_of(outcome: &ToolOutcome, failed: bool) -> Option<Json> {
    let parts = outcome.parts();
    let mut ours = Map::new();
    if !failed && !outcome.recorded() {
        ours.insert("ran".into(), Ran::word(Ran::Yes).into());
        ours.insert("recorded".into(), false.into());
    }
    if !failed && !parts.notes.is_empty() {
        ours.insert("notes".into(), parts.notes.iter().map(|note| Value::from(&**note)).collect());
    }
    if ours.is_empty() && parts.metadata.as_ref().is_none_or(is_object) {
        return parts.metadata.clone();
    }
    Some(join(parts.metadata.as_ref(), &ours))
}

fn is_object(json: &Json) -> bool {
    json.get().starts_with('{')
}

/// The members of `own`, and those of `ours` that it does not have.
fn join(own: Option<&Json>, ours: &Map<String, Value>) -> Json {
    let mut joined = Extra::default();
    if let Some(source) = own.map(|own| Source::Json(own.as_raw())) {
        match source.members() {
            Ok(members) => joined = members.into_iter().collect(),
            // The wire has an object there; whatever else a tool gave is kept inside one.
            Err(()) => joined.set("value", source.json()),
        }
    }
    for (name, value) in ours {
        if joined.get(name).is_none() {
            joined.set(&**name, value.clone());
        }
    }
    joined.to_json()
}

/// Milliseconds, with fractions.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

pub(crate) fn duration(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1e3).ok()
}
