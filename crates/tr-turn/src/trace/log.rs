//! The trace of a running turn, written by the turn and by the recorder.
use super::{Entry, Fact, Trace};
use crate::{
    plan::Candidate,
    watch::{TurnInfo, Watch},
};
use std::{
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use tool_reliability::telemetry::redact::{Hidden, Redact};
use tr_core::{
    BreakerState, ToolCall, ToolError, ToolManifest, ToolOutcome, classify, internal::lock,
};

/// The longest message in a trace.
const LONGEST: usize = 500;

/// The trace of a running turn.
pub(crate) struct Log {
    pub(crate) turn: Arc<str>,
    pub(crate) session: Option<Box<str>>,
    pub(crate) calls: usize,
    pub(crate) began: Instant,
    pub(crate) began_ms: u64,
    pub(crate) watchers: Arc<[Arc<dyn Watch>]>,
    pub(crate) redactor: Arc<dyn Redact>,
    pub(crate) entries: Mutex<Vec<Entry>>,
}

impl Log {
    pub(crate) fn since(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// Adds what is known of the turn, or of a call and its tool.
    pub(crate) fn push(
        &self,
        now: Instant,
        of: Option<(&Arc<str>, &Arc<str>)>,
        attempt: u32,
        fact: Fact,
    ) {
        let (call, tool) = of.map(|(call, tool)| (call.clone(), tool.clone())).unzip();
        let entry = Entry { at: self.since(now), call, tool, attempt, fact };
        let turn =
            TurnInfo { turn: &self.turn, session: self.session.as_deref(), calls: self.calls };
        self.watchers.iter().for_each(|watcher| watcher.on_entry(&turn, &entry));
        lock(&self.entries).push(entry);
    }

    pub(crate) fn of_turn(&self, now: Instant, fact: Fact) {
        self.push(now, None, 0, fact);
    }

    /// `text` for display: redacted and shortened. Texts of a tool go through [`Run::shown`].
    pub(crate) fn shown(&self, text: &str) -> Box<str> {
        let clean = self.redactor.redact(text);
        match clean.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &clean[..end]).into(),
            None => clean.into(),
        }
    }

    pub(crate) fn take(&self) -> Trace {
        let entries = std::mem::take(&mut *lock(&self.entries));
        Trace { turn: self.turn.clone(), began_ms: self.began_ms, entries }
    }
}

/// One tool's run for one call, with all its attempts.
pub(crate) struct Run {
    pub(crate) log: Arc<Log>,
    pub(crate) call: Arc<str>,
    pub(crate) tool: Arc<str>,
    pub(crate) manifest: Option<Arc<ToolManifest>>,
    /// The deadline of the call, or of the turn.
    pub(crate) deadline: Instant,
    /// The name of its breaker.
    pub(crate) breaker: Box<str>,
    pub(crate) notes: Mutex<Notes>,
    /// The values of the call that must not be shown.
    pub(crate) hidden: Mutex<Option<Hidden>>,
}

/// The attempts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notes {
    /// The number of the last attempt.
    pub(crate) attempts: u32,
    /// How many attempts did not reach the tool.
    pub(crate) refused: u32,
    /// How many errors the trace has.
    pub(crate) errors: u32,
}

impl Notes {
    /// How many attempts reached the tool, with the one in flight.
    pub(crate) const fn made(&self) -> u32 {
        self.attempts.saturating_sub(self.refused)
    }
}

/// A failed attempt: reported by the tool, or an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failed<'e> {
    Reported(&'e ToolOutcome, &'e ToolError),
    Error(&'e (dyn Error + Send + Sync + 'static)),
}

impl<'e> Failed<'e> {
    pub(crate) fn of<E>(end: Result<&'e ToolOutcome, &'e E>) -> Option<Self>
    where
        E: AsRef<dyn Error + Send + Sync + 'static>,
    {
        match end {
            Ok(outcome) => outcome.error().map(|error| Self::Reported(outcome, error)),
            Err(error) => Some(Self::Error(error.as_ref())),
        }
    }

    pub(crate) fn finding(self, manifest: Option<&ToolManifest>) -> classify::Finding<'e> {
        let found = match self {
            Self::Reported(_, error) => classify::tool_error(error),
            Self::Error(error) => classify::error(error),
        };
        manifest.map_or(found, |manifest| found.with_manifest(manifest))
    }

    pub(crate) fn message(self) -> String {
        match self {
            Self::Reported(_, error) => error.message.to_string(),
            Self::Error(error) => error.to_string(),
        }
    }
}

impl Run {
    pub(crate) fn new(
        log: Arc<Log>,
        call: Arc<str>,
        candidate: &Candidate,
        deadline: Instant,
    ) -> Self {
        let (tool, manifest) = (candidate.label.clone(), candidate.manifest.clone());
        let (breaker, notes) = (Box::default(), Mutex::default());
        let hidden = Mutex::default();
        Self { log, call, tool, manifest, deadline, breaker, notes, hidden }
    }

    /// Sets the values of the call that must not be shown.
    pub(crate) fn hide(&mut self, call: &ToolCall) {
        self.hidden = Mutex::new(Hidden::of(call.sensitive()));
    }

    /// Code and message of a failure for display, without the values of sensitive fields and
    /// without secrets.
    pub(crate) fn shown(&self, code: &str, failed: Failed<'_>) -> (Box<str>, Box<str>) {
        let mut hidden = lock(&self.hidden);
        if let (Some(hidden), Failed::Reported(outcome, _)) = (&mut *hidden, failed) {
            hidden.learn(outcome.content().map(tr_core::Json::get));
        }
        let shown = |text: &str| match &*hidden {
            Some(hidden) => self.log.shown(&hidden.clean(text)),
            None => self.log.shown(text),
        };
        (shown(code), shown(&failed.message()))
    }

    /// A copy, so that the lock is released at once.
    pub(crate) fn notes(&self) -> Notes {
        *lock(&self.notes)
    }

    pub(crate) fn push(&self, now: Instant, attempt: u32, fact: Fact) {
        self.log.push(now, Some((&self.call, &self.tool)), attempt, fact);
    }

    pub(crate) fn began(&self, attempt: u32) {
        let mut notes = lock(&self.notes);
        notes.attempts = notes.attempts.max(attempt);
    }

    pub(crate) fn failed(
        &self,
        now: Instant,
        attempt: u32,
        failed: Failed<'_>,
        breaker: BreakerState,
    ) {
        let found = failed.finding(self.manifest.as_deref());
        {
            let mut notes = lock(&self.notes);
            notes.errors += 1;
            notes.refused += u32::from(!found.end.reached_tool());
        }
        let (code, error) = self.shown(found.end.code, failed);
        let fact = Fact::ToolError {
            code,
            error,
            verdict: found.end.verdict,
            reason: found.reason(),
            ran: found.end.ran,
            breaker,
        };
        self.push(now, attempt, fact);
    }
}
