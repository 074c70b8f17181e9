//! [`Watch`]: one observed call or attempt. The service starts it and the future ends it; its end
//! is reported as an event, as metrics and on its span.
use crate::{
    log::{self, Record},
    metrics::{Decision, Ended, Series, utee},
    notes::{self, Notes},
    redact::Hidden,
    signals::Core,
};
use opentelemetry::{
    Context, KeyValue,
    trace::{Status as SpanStatus, TraceContextExt as _},
};
use std::{borrow::Cow, fmt, mem, sync::OnceLock, thread, time::Duration};
use tokio::time::Instant;
use tr_core::{
    BreakerState, Classification, DedupeScope, Effect, Ran, Status, Verdict,
    chunks::Chunks,
    code,
    internal::{Shard, millis},
};

/// A call or an attempt that is observed. If it is dropped before its end, it reports that, too.
#[derive(Debug)]
pub(crate) struct Watch {
    /// When it began, if its duration is reported.
    pub(crate) since: Option<Instant>,
    pub(crate) counted: Option<Counted>,
    /// Active while the call is polled.
    pub(crate) context: Option<Context>,
    pub(crate) report: Report,
    /// What decides whether a caller may repeat a failed call.
    pub(crate) effect: Effect,
    pub(crate) repeat_safe: Option<bool>,
    /// What must not be shown of this call, where its tool has sensitive fields.
    pub(crate) hidden: Option<Box<Hidden>>,
    /// Of a call whose caller takes chunks.
    pub(crate) chunks: Option<Chunks>,
    pub(crate) is_over: bool,
}

/// What is counted at the end.
#[derive(Debug)]
pub(crate) enum Counted {
    /// A call.
    Call(Shard<Series>, DedupeScope),
    /// What shadow mode made of a call.
    Shadow(Shard<Series>),
}

/// What is written to the log and the span, beside the metrics.
#[derive(Debug)]
pub(crate) enum Report {
    /// Nothing: logs are off, and the span is not recorded.
    None,
    Call(Box<CallReport>),
    /// The attempt's number, from 1.
    Attempt(Option<Shard<Core>>, u32),
}

/// What events and the span contain of a call; read at its start.
#[derive(Debug)]
pub(crate) struct CallReport {
    pub(crate) core: Shard<Core>,
    pub(crate) logs: bool,
    pub(crate) notes: Notes,
    pub(crate) tool: Text,
    pub(crate) action: Option<Text>,
    pub(crate) request_id: Option<Text>,
    pub(crate) session: Option<Text>,
    pub(crate) correlation: Option<Text>,
    /// The trace that the request names, if that is shown.
    pub(crate) trace: Option<Text>,
}

/// Longer texts are cut and redacted at once.
const SHORT: usize = 256;

/// A name or an id of a call, redacted when it is first shown: of most calls nothing is.
pub(crate) struct Text {
    raw: Box<str>,
    shown: OnceLock<Box<str>>,
}

impl Text {
    pub(crate) fn new(core: &Core, hidden: Option<&Hidden>, text: &str) -> Self {
        if hidden.is_none() && text.len() <= SHORT {
            return Self { raw: text.into(), shown: OnceLock::new() };
        }
        let shown = core.redact_id(&without(hidden, text)).into();
        Self { raw: Box::default(), shown }
    }

    pub(crate) fn shown(&self, core: &Core) -> &str {
        self.shown.get_or_init(|| core.redact_id(&self.raw))
    }
}

/// Without what is not redacted yet.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.shown.get()).finish()
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome<'r> {
    pub(crate) end: Classification<'r>,
    pub(crate) message: Option<&'r str>,
    pub(crate) is_from_cache: bool,
    /// The call was dropped before its end.
    pub(crate) is_dropped: bool,
}

impl Watch {
    /// Runs `work` as a part of this call: its span is active, and events of inner layers are noted.
    #[inline]
    pub(crate) fn within<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _active = self.context.clone().map(Context::attach);
        let _noting = match &mut self.report {
            Report::Call(call) => Some(notes::enter(&mut call.notes)),
            Report::None | Report::Attempt(..) => None,
        };
        work()
    }

    /// The id of its span, if that is recorded.
    #[inline]
    pub(crate) fn span_id(&self) -> Option<String> {
        let span = self.context.as_ref()?.span();
        span.is_recording().then(|| span.span_context().span_id().to_string())
    }

    /// Whether it is an attempt of a call.
    pub(crate) const fn is_attempt(&self) -> bool {
        matches!(self.report, Report::Attempt(..))
    }

    /// Whether the message of a failure is reported.
    pub(crate) const fn wants_message(&self) -> bool {
        !matches!(self.report, Report::None)
    }

    /// Reports the end; dropping it afterwards reports nothing.
    pub(crate) fn end(&mut self, outcome: Outcome<'_>) {
        self.is_over = true;
        let elapsed = self.since.map(|since| since.elapsed()).unwrap_or_default();
        let end = outcome.end;
        let retriable = end.is_retriable(self.effect, self.repeat_safe);
        let status = Status::of(end, retriable);
        match &self.counted {
            Some(Counted::Call(series, scope)) => {
                let (scope, effect) = (*scope, self.effect);
                series.ended(Ended { status, scope, effect, code: end.code, elapsed });
                if let Some(chunks) = &self.chunks {
                    series.streamed(chunks.sent());
                }
            }
            Some(Counted::Shadow(series)) => {
                series.shadowed();
                // Of a refusal for its params no observer hears.
                if end.code == code::INVALID_ENVELOPE && end.ran == Ran::No {
                    series.decided(Decision::REFUSAL);
                }
            }
            None => {}
        }
        match mem::replace(&mut self.report, Report::None) {
            Report::None => {}
            Report::Call(call) => {
                let shown = Shown::new(&call.core, &outcome, self.hidden.as_deref());
                if call.logs {
                    let retriable = retriable && !end.exhausted;
                    call.log(self.context.as_ref(), &shown, &outcome, elapsed, (status, retriable));
                }
                self.close(call.attempts(&outcome), call.notes.breaker, Some(&shown), end);
            }
            Report::Attempt(core, attempt) => {
                let breaker = notes::current().and_then(|notes| notes.breaker);
                // An inner layer refused: there was no attempt.
                notes::note(|notes| match end.reached_tool() {
                    true => notes.attempts = notes.attempts.saturating_add(1),
                    false => notes.was_refused = true,
                });
                let hidden = self.hidden.as_deref();
                let shown = core.map(|core| Shown::new(&core, &outcome, hidden));
                self.close(attempt, breaker, shown.as_ref(), end);
            }
        }
    }

    fn close(
        &self,
        attempt: u32,
        breaker: Option<BreakerState>,
        shown: Option<&Shown>,
        end: Classification<'_>,
    ) {
        let Some(context) = &self.context else { return };
        let span = context.span();
        if !span.is_recording() {
            return;
        }
        span.set_attribute(KeyValue::new("retry.attempt", i64::from(attempt)));
        if let Some(breaker) = breaker {
            span.set_attribute(KeyValue::new("breaker.state", breaker.as_str()));
        }
        if let Some(chunks) = &self.chunks {
            let sent = i64::try_from(chunks.sent()).unwrap_or(i64::MAX);
            span.set_attribute(KeyValue::new("stream.chunks", sent));
        }
        if let (false, Some(shown)) = (end.verdict.is_success(), shown) {
            span.set_attribute(KeyValue::new("error.type", shown.code.to_string()));
            span.set_status(SpanStatus::error(shown.message.as_deref().unwrap_or("").to_owned()));
        }
        span.end();
    }
}

/// The end of a dropped call: cancelled, or unknown if the thread panics.
impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            let end = if thread::panicking() {
                Classification::new(Verdict::Permanent, Ran::Unknown, code::OUTCOME_UNKNOWN)
            } else {
                Classification::new(Verdict::Cancelled, Ran::Unknown, code::CANCELLED)
            };
            self.end(Outcome { end, message: None, is_from_cache: false, is_dropped: true });
        }
    }
}

/// Code and message of a failure, redacted and cut.
struct Shown {
    code: Box<str>,
    message: Option<Box<str>>,
}

impl Shown {
    fn new(core: &Core, outcome: &Outcome<'_>, hidden: Option<&Hidden>) -> Self {
        let Classification { code, verdict, .. } = outcome.end;
        // The code of a success is not reported.
        let code = Some(code).filter(|_| !verdict.is_success());
        Self {
            code: code.map(|code| core.redact_id(&without(hidden, code))).unwrap_or_default(),
            message: outcome.message.map(|message| core.redact_message(&without(hidden, message))),
        }
    }
}

/// `text` without the values of sensitive fields.
pub(crate) fn without<'t>(hidden: Option<&Hidden>, text: &'t str) -> Cow<'t, str> {
    hidden.map_or(Cow::Borrowed(text), |hidden| hidden.clean(text))
}

impl CallReport {
    fn shown<'t>(&'t self, text: &'t Option<Text>) -> Option<&'t str> {
        text.as_ref().map(|text| text.shown(&self.core))
    }

    /// What every event of the call says.
    pub(crate) fn record(&self) -> Record<'_> {
        Record {
            request_id: self.shown(&self.request_id),
            tool_name: self.tool.shown(&self.core),
            session_key: self.shown(&self.session),
            idempotency_key_hash: self.notes.key_hash,
            correlation_id: self.shown(&self.correlation),
            shadow: self.core.shadow.then_some(true),
            ..Record::default()
        }
    }

    fn is_from_cache(&self, outcome: &Outcome<'_>) -> bool {
        // A record without the call's end answers nothing.
        let was_replayed = self.notes.replayed.is_some();
        outcome.is_from_cache || (was_replayed && !ENDLESS.contains(&outcome.end.code))
    }

    /// Whether a layer answered and no attempt was made.
    fn is_blocked(&self, outcome: &Outcome<'_>) -> bool {
        let (end, notes) = (outcome.end, &self.notes);
        let had_attempt = notes.attempts > 0 || notes.retries > 0;
        let is_refusal =
            REFUSALS.contains(&end.code) && (end.ran == Ran::No || ENDLESS.contains(&end.code));
        is_refusal && !had_attempt && !outcome.is_dropped && !self.is_from_cache(outcome)
    }

    fn attempts(&self, outcome: &Outcome<'_>) -> u32 {
        let none = self.is_blocked(outcome) || self.is_from_cache(outcome);
        if none { 0 } else { self.notes.attempts() }
    }

    fn log(
        &self,
        context: Option<&Context>,
        shown: &Shown,
        outcome: &Outcome<'_>,
        elapsed: Duration,
        (status, retriable): (Status, bool),
    ) {
        let (end, notes) = (outcome.end, &self.notes);
        let is_good = end.verdict.is_success();
        let record = || Record {
            event: if self.is_blocked(outcome) { "tool_call_blocked" } else { "tool_call_end" },
            state: Some(state(end, notes)),
            attempt: Some(self.attempts(outcome)),
            elapsed: Some(elapsed),
            from_cache: Some(self.is_from_cache(outcome)),
            error_code: (!is_good).then_some(&*shown.code),
            retriable: (!is_good).then_some(retriable),
            breaker_state: notes.breaker.map(BreakerState::as_str),
            error: shown.message.as_deref(),
            ..self.record()
        };
        if is_good {
            log::info(record);
        } else {
            log::warn(record);
        }
        if self.core.utee && !self.core.shadow {
            self.invocation(context, elapsed, status);
        }
    }

    /// UTEE's event of a call that ended.
    fn invocation(&self, context: Option<&Context>, elapsed: Duration, status: Status) {
        let trace = context.map(|cx| cx.span().span_context().trace_id().to_string());
        let trace = trace.as_deref().or_else(|| self.shown(&self.trace));
        let (tool, action) = utee::split(self.tool.shown(&self.core), self.shown(&self.action));
        tracing::event!(
            target: crate::log::TARGET,
            tracing::Level::INFO,
            event = "tool_invocation",
            requestId = self.shown(&self.request_id),
            traceId = trace,
            tool,
            action = Some(action).filter(|action| !action.is_empty()),
            durationMs = millis(elapsed),
            status = status.as_str(),
        );
    }
}

/// The codes of refusals for a record that does not have the call's end.
const ENDLESS: [&str; 3] = [code::OUTCOME_UNKNOWN, code::ANSWER_NOT_KEPT, code::RECORD_UNREADABLE];

/// The codes of answers that layers give in place of an attempt.
const REFUSALS: [&str; 13] = [
    code::ANSWER_NOT_KEPT,
    code::CIRCUIT_OPEN,
    code::IDEMPOTENCY_CONFLICT,
    code::IDEMPOTENCY_IN_FLIGHT,
    code::INVALID_ENVELOPE,
    code::LOOP_DETECTED,
    code::OUTCOME_UNKNOWN,
    code::RECORD_UNREADABLE,
    code::SESSION_CORRUPT,
    code::STORE_FULL,
    code::STORE_UNAVAILABLE,
    code::TOOL_ERROR_LIMIT,
    code::TOOL_CALL_LIMIT,
];

/// Where the call stands, in the words of its record.
fn state(end: Classification<'_>, notes: &Notes) -> &'static str {
    match (notes.replayed, end.verdict, end.code) {
        (Some(state @ ("done" | "failed" | "cancelled" | "unknown")), ..) => state,
        (_, Verdict::Success, _) => "done",
        (_, Verdict::Cancelled, _) => "cancelled",
        (_, _, code::IDEMPOTENCY_IN_FLIGHT) => "inflight",
        (_, _, code::ANSWER_NOT_KEPT) => "done",
        (_, _, code::OUTCOME_UNKNOWN | code::RECORD_UNREADABLE) => "unknown",
        _ => "failed",
    }
}
