//! Records as operators see them.
use crate::{
    end::{Run, Settlement, is_retriable},
    failure::RecordedFailure,
    local::notes::RequestNote,
    protocol::{self, Millis, Phase, Record},
};
use serde::Serialize;
use std::{borrow::Cow, collections::BTreeMap, time::Duration};
use tr_core::{DedupeScope, canonical::Key};

/// A record, as the admin page and other programs read it.
///
/// Responses are left out: they may hold secrets. Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DedupeRecord {
    /// The hashed key, in hexadecimal digits, as handles take it.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// The caller's key as the caller sent it; the hashed key where it was derived.
    pub idempotency_key: String,
    /// The state of the call.
    pub state: RecordState,
    /// When it was first claimed, as far as the kept runs reach back.
    pub created_at_ms: u64,
    /// When it last changed.
    pub updated_at_ms: u64,
    /// When the record expires; in flight, when the lease ends.
    pub expires_at_ms: u64,
    /// How long this state lasts.
    pub ttl_ms: u64,
    /// Who made the request.
    pub request: RequestNotes,
    /// Its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// Its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordedError>,
    /// In flight: when the lease ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_until_ms: Option<u64>,
    /// Counts changes.
    pub version: u64,
    /// Grows with every claim.
    pub epoch: u64,
    /// The claim's owner, in hexadecimal digits.
    pub owner: String,
}

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RecordState {
    /// It is running.
    Inflight,
    /// It succeeded.
    Done,
    /// It failed.
    Failed,
    /// It was cancelled before it started.
    Cancelled,
    /// It may have run, and its end was not recorded.
    Unknown,
}

/// The number of records of one tool in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateCount {
    /// The tool's full name.
    pub tool: String,
    /// For whose calls they are replayed.
    pub scope: DedupeScope,
    /// The state of these calls.
    pub state: RecordState,
    /// The number of records.
    pub records: u64,
    /// Of these, calls in flight past their lease.
    pub stale: u64,
    /// The longest time to live among them.
    pub ttl: Duration,
}

/// Who made a request. Fields that the request did not have are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequestNotes {
    /// The session.
    pub session_key: String,
    /// The user or account.
    pub actor_id: String,
    /// The request.
    pub request_id: String,
    /// The id that the model gave to the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The digest of the canonical params, in hexadecimal digits.
    pub params_digest: String,
    /// What else its caller said of it, for a person who settles it: names and values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub about: BTreeMap<String, String>,
}

/// A call's runs. All attempts of an inner retry layer count as one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Execution {
    /// The number of runs, with the one in flight.
    pub attempt_count: u32,
    /// The runs that have ended.
    pub attempts: Vec<Attempt>,
}

/// One run that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Attempt {
    /// When it was claimed.
    pub started_at_ms: u64,
    /// When its end was recorded.
    pub finished_at_ms: u64,
    /// `success` or `error`.
    pub status: &'static str,
    /// It may succeed another time, and a repeat is safe.
    pub retriable: bool,
    /// The code of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Who recorded its end, if an operator did; [`finished_at_ms`](Self::finished_at_ms) says when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settlement: Option<Settlement>,
}

/// The failure of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RecordedError {
    /// The code.
    pub code: String,
    /// The error's text; the code, where a response reported the failure.
    pub message: String,
    /// It would fail again, or a repeat could run the tool a second time.
    pub terminal: bool,
    /// It may succeed another time, and a repeat is safe.
    pub should_retriable: bool,
}

impl Attempt {
    fn of(run: &Run, unix: impl Fn(Millis) -> u64) -> Self {
        Self {
            started_at_ms: unix(run.started_at),
            finished_at_ms: unix(run.finished_at),
            status: if run.success { "success" } else { "error" },
            retriable: run.retriable,
            error_code: run.code.as_deref().map(str::to_owned),
            settlement: run.settled.as_deref().cloned(),
        }
    }
}

impl RecordedError {
    fn of<D, F>(state: &protocol::State<D, F>, recorded: &RecordedFailure) -> Self {
        let retriable = is_retriable(state);
        Self {
            code: recorded.code.to_string(),
            message: recorded.error.as_ref().map_or(recorded.code.to_string(), ToString::to_string),
            terminal: !retriable,
            should_retriable: retriable,
        }
    }
}

impl RecordState {
    /// The name in events and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inflight => "inflight",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) const fn of(phase: Phase) -> Self {
        match phase {
            Phase::Inflight => Self::Inflight,
            Phase::Done => Self::Done,
            Phase::FailedNever | Phase::FailedWhenAsked | Phase::FailedFreely => Self::Failed,
            Phase::Cancelled => Self::Cancelled,
            Phase::Unknown => Self::Unknown,
        }
    }
}

impl DedupeRecord {
    /// A record as it stands, with the runs before its last one and the failure of that one. `unix`
    /// turns its times into milliseconds since the Unix epoch.
    pub(crate) fn new<D, F>(
        key: &Key,
        record: &Record<D, F>,
        notes: &RequestNote<'_>,
        earlier: &[Run],
        failure: Option<&RecordedFailure>,
        settled: Option<Box<Settlement>>,
        unix: impl Fn(Millis) -> u64,
    ) -> Self {
        let state = RecordState::of(record.state.phase());
        let last = Run::of(&record.state, failure, record.claimed_at, record.changed_at);
        let last = last.map(|run| Run { settled, ..run });
        let first = earlier.first().map_or(record.claimed_at, |run| run.started_at);
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
        Self {
            key: key.to_string(),
            tool: notes.tool.to_string(),
            idempotency_key: notes
                .key
                .as_ref()
                .map_or_else(|| key.to_string(), ToString::to_string),
            state,
            created_at_ms: unix(first),
            updated_at_ms: unix(record.changed_at),
            expires_at_ms: unix(record.until),
            ttl_ms: record.until.saturating_sub(record.changed_at),
            request: RequestNotes {
                session_key: text(&notes.session),
                actor_id: text(&notes.actor),
                request_id: text(&notes.request_id),
                tool_call_id: notes.tool_call_id.as_ref().map(ToString::to_string),
                params_digest: record.digest.to_string(),
                about: notes.about.as_deref().map(said).unwrap_or_default(),
            },
            execution: Some(Execution {
                attempt_count: record.runs,
                attempts: earlier.iter().chain(&last).map(|run| Attempt::of(run, &unix)).collect(),
            }),
            error: failure.map(|failure| RecordedError::of(&record.state, failure)),
            lock_until_ms: (state == RecordState::Inflight).then(|| unix(record.until)),
            version: record.version,
            epoch: record.token.epoch,
            owner: format!("{:016x}", record.token.owner),
        }
    }

    /// The hashed key, as handles take it.
    #[must_use]
    pub fn hashed_key(&self) -> Option<Key> {
        self.key.parse().ok()
    }
}

/// The names and values of lines `name: value`.
fn said(lines: &str) -> BTreeMap<String, String> {
    let pairs = lines.lines().filter_map(|line| line.split_once(": "));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
