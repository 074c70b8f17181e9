//! Observers of the calls besides the events: the attribution log, and the counts of the ends of calls, of which a
//! summary is logged when the guard ends.
use super::{attribution::ClientLog, call::McpCall, log::SUMMARY, options::Mode};
use crate::{secrets::without, terminal::short_id, wire::params::Said};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tool_reliability::{Builder, idempotency::error::AnswerNotKept, telemetry::TARGET};
use tr_core::{
    BoxError, CallInfo, CallParts, DefaultPolicy, Event, FailureInfo, Observer, Ran,
    RequestPolicy as _, ToolCall, ToolOutcome, Verdict, canonical::Key, causes, classify, code,
    internal::lock, printable,
};

/// The observers; none by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watching {
    attribution: Option<Arc<ClientLog>>,
    counts: Option<Arc<Counts>>,
    /// Whether there is a log for the summary.
    logs: bool,
    /// Whether the summary is of what the stack would have done.
    shadow: bool,
}

impl Watching {
    /// Opens the attribution log, if it has a path, and counts; the summary is logged if there is a log for it.
    pub(crate) fn new(mode: Mode, path: Option<&Path>, logs: bool) -> anyhow::Result<Self> {
        if mode == Mode::Off {
            return Ok(Self::default());
        }
        let attribution = path.map(ClientLog::open).transpose()?.map(Arc::new);
        let (counts, shadow) = (Some(Arc::default()), mode == Mode::Shadow);
        Ok(Self { attribution, counts, logs, shadow })
    }

    /// Registers them with the stack.
    pub(crate) fn watch(&self, mut builder: Builder) -> Builder {
        if let Some(log) = self.attribution.clone() {
            builder = builder.loop_guard(|guard| guard.log(log));
        }
        match self.counts.clone() {
            Some(counts) if self.shadow => builder
                .shadow_observer(counts.clone())
                // As the call would have ended.
                .on_shadow_end(move |shadow| {
                    counts.count(&fate(shadow.is_run, may_repeat(shadow.call), shadow.end));
                }),
            Some(counts) => builder.observer(counts),
            None => builder,
        }
    }

    /// Adds to the call what its client says about its model.
    pub(crate) fn attribute(&self, parts: &mut CallParts, said: &Said) {
        if let Some(log) = &self.attribution {
            log.attribute(parts, said);
        }
    }

    /// Counts an answer whose call's end is not recorded.
    pub(crate) fn on_unrecorded(&self, key: &Key) {
        let record = short_id(key);
        tracing::warn!(target: TARGET, event = "end_not_recorded", record);
        if let Some(counts) = &self.counts {
            add(&counts.unrecorded);
        }
    }

    /// Counts the beginning of a call; in `shadow` mode its end is counted as the stack would have made it.
    pub(crate) fn begin(&self, mcp: &Arc<McpCall>, call: &ToolCall) -> Option<Counted> {
        let counts = self.counts.clone()?;
        add(&counts.calls);
        let (mcp, may_repeat, shadow) = (mcp.clone(), may_repeat(call), self.shadow);
        Some(Counted { counts, mcp, may_repeat, shadow, is_over: false })
    }

    /// A client has said its name, as `name/version`.
    pub(crate) fn know_client(&self, name: &str) {
        self.attribution.iter().for_each(|log| log.know(name));
        let Some(counts) = &self.counts else { return };
        let mut clients = lock(&counts.clients);
        if !clients.contains(name) && clients.len() < MOST_NAMED {
            clients.insert(name.into());
        }
    }

    /// What was counted until now.
    pub(crate) fn shown(&self) -> Value {
        json!(self.counts.as_deref())
    }

    /// Logs the summary, and writes the rest of the attribution log, after all calls have ended.
    pub(crate) fn finish(&self) {
        if let Some(counts) = self.counts.as_ref().filter(|_| self.logs) {
            counts.tell();
        }
        if let Some(log) = &self.attribution {
            log.finish();
        }
    }
}

/// The counts of one guard, as `tool-guard status` shows them.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    calls: AtomicU64,
    retried: AtomicU64,
    retries: AtomicU64,
    replayed: AtomicU64,
    unknown: AtomicU64,
    unfinished: AtomicU64,
    unrecorded: AtomicU64,
    /// By the code of the refusal; there are few codes.
    refused: Mutex<BTreeMap<Box<str>, u64>>,
    clients: Mutex<BTreeSet<Box<str>>>,
    /// Why the last call that should be recorded was refused, if it was.
    store_failure: Mutex<Option<String>>,
    /// By the tool's name.
    tools: Mutex<BTreeMap<Box<str>, ToolCounts>>,
}

/// More clients and tools than one guard has.
const MOST_NAMED: usize = 1_000;

/// How much of a failure is shown, in characters.
const SHOWN: usize = 160;

/// The calls of one tool that were sent.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolCounts {
    calls: u64,
    failed: u64,
    /// Since its last success.
    failed_in_a_row: u64,
    last_failure: String,
}

/// The end of a call.
#[derive(Debug, PartialEq, Eq)]
enum Fate<'e> {
    /// The server's answer, success or failure, or a failure with a known outcome.
    Ended,
    /// A recorded end, or that of the same call that was running.
    Replayed,
    /// A refusal with this code; nothing was sent.
    Refused(&'e str),
    /// It may have run, and must not be repeated.
    Unknown,
}

impl Counts {
    /// Logs the summary.
    pub(crate) fn tell(&self) {
        let refused = lock(&self.refused).clone();
        let by: Vec<_> = refused.iter().map(|(code, calls)| format!("{code}={calls}")).collect();
        tracing::event!(
            name: SUMMARY,
            target: TARGET,
            tracing::Level::INFO,
            event = SUMMARY,
            calls = self.calls.load(Relaxed),
            retried = self.retried.load(Relaxed),
            retries = self.retries.load(Relaxed),
            replayed = self.replayed.load(Relaxed),
            refused = refused.values().sum::<u64>(),
            refusedBy = by.join(" "),
            unknown = self.unknown.load(Relaxed),
            unfinished = self.unfinished.load(Relaxed),
            unrecorded = self.unrecorded.load(Relaxed),
        );
    }

    /// Counts the end of a call that was sent, by its tool.
    fn count_tool(&self, tool: &str, end: &Result<ToolOutcome, BoxError>) {
        let mut tools = lock(&self.tools);
        if !tools.contains_key(tool) && tools.len() < MOST_NAMED {
            tools.insert(tool.into(), ToolCounts::default());
        }
        let Some(counts) = tools.get_mut(tool) else { return };
        counts.calls += 1;
        let failure = match end {
            Ok(outcome) => outcome.error().map(|error| error.message.to_string()),
            Err(error) => Some(error.to_string()),
        };
        match failure {
            None => counts.failed_in_a_row = 0,
            Some(failure) => {
                counts.failed += 1;
                counts.failed_in_a_row += 1;
                let failure: String = without(&failure).chars().take(SHOWN).collect();
                counts.last_failure = printable(&failure).into_owned();
            }
        }
    }

    fn count(&self, fate: &Fate<'_>) {
        match fate {
            Fate::Ended => {}
            Fate::Replayed => add(&self.replayed),
            Fate::Unknown => add(&self.unknown),
            Fate::Refused(code) => {
                let mut refused = lock(&self.refused);
                *refused.entry((*code).into()).or_default() += 1;
            }
        }
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}

impl Observer for Counts {
    fn on_event(&self, _: &CallInfo<'_>, event: &Event<'_>) {
        if let Event::Retry { attempt, .. } = event {
            add(&self.retries);
            if *attempt == 0 {
                add(&self.retried);
            }
        }
    }
}

/// A call that is counted. A call that is dropped before its end counts as unfinished.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Arc<Counts>,
    mcp: Arc<McpCall>,
    /// Whether it may be repeated although it may have run.
    may_repeat: bool,
    /// Its end is counted as the stack would have made it, when its shadow ends.
    shadow: bool,
    is_over: bool,
}

/// Whether the call may be repeated although it may have run.
fn may_repeat(call: &ToolCall) -> bool {
    let declared_safe = DefaultPolicy.is_repeat_safe(call);
    DefaultPolicy.effect(call).may_repeat(Ran::Unknown, declared_safe)
}

impl Counted {
    /// Counts the end of the call.
    pub(crate) fn end(mut self, end: &Result<ToolOutcome, BoxError>) {
        self.is_over = true;
        let was_sent = self.mcp.is_own_id_used();
        if was_sent {
            self.counts.count_tool(&self.mcp.tool, end);
        }
        let failure = end
            .as_ref()
            .err()
            .filter(|it| !was_sent && classify::error(&***it).end.code == code::STORE_UNAVAILABLE);
        if failure.is_some() || was_sent && self.mcp.trace.record.is_some() {
            let why = failure.map(|error| causes(&**error).last().map(ToString::to_string));
            *lock(&self.counts.store_failure) = why.flatten();
        }
        if !self.shadow {
            self.counts.count(&fate(was_sent, self.may_repeat, end));
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !self.is_over {
            add(&self.counts.unfinished);
            if self.mcp.is_own_id_used() && !self.may_repeat {
                add(&self.counts.unknown);
            }
        }
    }
}

fn fate<'e>(was_sent: bool, may_repeat: bool, end: &'e Result<ToolOutcome, BoxError>) -> Fate<'e> {
    let (found, is_answer) = match end {
        Ok(outcome) if outcome.from_cache() => return Fate::Replayed,
        Ok(outcome) => match outcome.error() {
            Some(error) => (classify::tool_error(error).end, true),
            None => return Fate::Ended,
        },
        Err(error) => {
            let replays = |it: &(dyn std::error::Error + 'static)| {
                let info = it.downcast_ref::<FailureInfo>();
                info.is_some_and(|info| info.replay().is_some()) || it.is::<AnswerNotKept>()
            };
            if !was_sent && causes(&**error).any(replays) {
                return Fate::Replayed;
            }
            (classify::error(&**error).end, false)
        }
    };
    // A server's own failure has a known outcome, unless it is transient: the call may have run.
    let is_open = !is_answer || matches!(found.verdict, Verdict::Transient { .. });
    match found.verdict {
        Verdict::Cancelled if found.ran == Ran::No => Fate::Ended,
        _ if !was_sent => Fate::Refused(found.code),
        _ if found.ran == Ran::Unknown && is_open && !may_repeat => Fate::Unknown,
        _ => Fate::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_core::{Json, ToolError, code};

    fn failure(verdict: Verdict, ran: Ran) -> Result<ToolOutcome, BoxError> {
        let mut error = ToolError::new("e", "failed");
        (error.verdict, error.ran) = (Some(verdict), ran);
        Ok(ToolOutcome::failure(error))
    }

    fn error(code: &'static str, ran: Ran, verdict: Verdict) -> Result<ToolOutcome, BoxError> {
        Err(Box::new(FailureInfo::new(code, ran, verdict)))
    }

    #[test]
    fn what_a_call_came_to() {
        let (transient, permanent) = (Verdict::TRANSIENT, Verdict::Permanent);
        let refusal = error(code::CIRCUIT_OPEN, Ran::No, transient);
        let unknown = error(code::OUTCOME_UNKNOWN, Ran::Unknown, permanent);
        let timeout = error(code::TIMEOUT, Ran::Unknown, transient);
        let withdrawn = error(code::CANCELLED, Ran::No, Verdict::Cancelled);
        let cases = [
            (true, Ok(ToolOutcome::success(Json::empty_object())), Fate::Ended),
            (true, failure(permanent, Ran::Unknown), Fate::Ended),
            (true, failure(transient, Ran::Unknown), Fate::Unknown),
            (true, failure(transient, Ran::No), Fate::Ended),
            (true, timeout, Fate::Unknown),
            (true, withdrawn, Fate::Ended),
            (false, refusal, Fate::Refused(code::CIRCUIT_OPEN)),
            (false, unknown, Fate::Refused(code::OUTCOME_UNKNOWN)),
            (false, failure(permanent, Ran::No), Fate::Refused("e")),
            (false, error(code::CANCELLED, Ran::No, Verdict::Cancelled), Fate::Ended),
        ];
        for (was_sent, end, wanted) in cases {
            assert_eq!(fate(was_sent, false, &end), wanted, "{end:?}");
        }
        let timeout = error(code::TIMEOUT, Ran::Unknown, transient);
        assert_eq!(fate(true, true, &timeout), Fate::Ended, "a read leaves nothing open");
    }
}
