//! Calls of unknown outcome block equal calls, so that a model cannot repeat one under a new id.
use super::{
    identity,
    records::{self, RecordsCommand},
};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tool_reliability::idempotency::{
    RecordState, StoreHandle,
    store::{StoreError, StoreErrorKind},
};
use tr_core::{
    BoxError, Classification, FailureInfo, Ran, SystemClock, ToolCall, ToolOutcome, Verdict,
    WallClock, canonical::Key, classify, code, printable,
};

/// How long they do.
const BARS: Duration = Duration::from_secs(600);

/// More than occur in that time; beyond it the one that ends first is forgotten.
const MOST: usize = 10_000;

/// More calls with the same params than one conversation has.
const LISTED: usize = 256;

/// Calls of this process that may have run, by the key of equal calls. Several calls may be equal: each
/// blocks the others until its own end is known.
#[derive(Debug, Default)]
pub(crate) struct Unknowns {
    calls: Mutex<BTreeMap<(Key, Who), Since>>,
    numbers: AtomicU64,
    /// By which a person settles a record.
    command: RecordsCommand,
}

/// A call, and the key that it shares with equal calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Equals {
    /// The shared key.
    pub(crate) key: Key,
    who: Who,
}

/// Identifies one of several equal calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// A call without an id.
    Numbered(u64),
    /// All calls with this id are one.
    Known(Key),
}

impl Who {
    const FIRST: Self = Self::Numbered(0);
    const LAST: Self = Self::Known(Key::from_bytes([u8::MAX; 32]));
}

#[derive(Clone, Copy, Debug)]
struct Since {
    until: Instant,
    /// Its record, if there is one.
    key: Option<Key>,
}

/// A call that is not run, because an equal one may have run.
#[derive(Debug, thiserror::Error)]
#[error("{}: that earlier call may have run; this one did not run", why(*is_unreadable))]
pub(crate) struct Barred {
    #[source]
    facts: FailureInfo,
    /// The record of the call that blocks it.
    key: Option<Key>,
    /// Whether that record cannot be read.
    is_unreadable: bool,
    /// For how long it is still blocked.
    left: Duration,
    /// The tool, if its effect is not declared.
    undeclared: Option<Box<str>>,
}

/// A call that is not run, because the records do not tell whether an equal one may have run.
#[derive(Debug, thiserror::Error)]
#[error("the call was not run, because the records of equal calls could not be read")]
pub(crate) struct NotCompared(#[source] FailureInfo);

impl From<StoreError> for NotCompared {
    fn from(cause: StoreError) -> Self {
        let verdict = if cause.is_transient() { Verdict::TRANSIENT } else { Verdict::Permanent };
        Self(FailureInfo::new(code::STORE_UNAVAILABLE, Ran::No, verdict).because(cause))
    }
}

const fn why(is_unreadable: bool) -> &'static str {
    if is_unreadable {
        "the same call with the same arguments was sent before, and its record cannot be read"
    } else {
        "the same call with the same arguments was sent before, and cancelled, given up or cut off before its answer came"
    }
}

impl Barred {
    fn by(key: Option<Key>, left: Duration) -> Self {
        let facts = FailureInfo::new(code::OUTCOME_UNKNOWN, Ran::Unknown, Verdict::Permanent);
        Self { facts, key, is_unreadable: false, left, undeclared: None }
    }

    /// Names this call's tool, if its effect is not declared.
    pub(crate) fn of(mut self, call: &ToolCall) -> Self {
        let parts = call.parts();
        self.undeclared = (!parts.effect_declared).then(|| parts.tool.label().into());
        self
    }

    /// What a person can do about it.
    fn advice(&self, command: &RecordsCommand) -> String {
        let mut advice = match &self.key {
            Some(key) if self.is_unreadable => forgets(key, command),
            Some(key) => settles(key, command),
            None => {
                let minutes = self.left.as_secs().div_ceil(60).max(1);
                format!(
                    " [it has no record: calls equal to it are refused for another {minutes} min]"
                )
            }
        };
        if let Some(tool) = &self.undeclared {
            let tool = printable(tool);
            let _ = write!(
                advice,
                " [if {tool} changes nothing, a person can declare it: effect = \"read_only\" for it in the guard's --catalog, or readOnlyHint in the server's list of tools]"
            );
        }
        advice
    }
}

/// The warning for the model about a blocked call.
pub(crate) const CHECK_FIRST: &str =
    " (do not repeat it; check first whether the earlier call ran)";

fn settles(key: &Key, command: &RecordsCommand) -> String {
    let short = records::short(key);
    format!(
        " [record {short}: a person can settle it: {command} settle {short} done, or did-not-run]"
    )
}

/// What a person can do about a record that says no more than that there was a call.
fn forgets(key: &Key, command: &RecordsCommand) -> String {
    let short = records::short(key);
    format!(
        " [record {short}: a person can look at it: {command} show {short}; if no newer tool-guard wrote it, find out whether the earlier call ran, then: {command} forget {short} --force]"
    )
}

impl Unknowns {
    /// For calls whose records this command settles.
    pub(crate) fn settled_by(command: RecordsCommand) -> Self {
        Self { command, ..Self::default() }
    }

    /// What a person can do about a call that may have run; empty if it has no record and blocks itself.
    pub(crate) fn told(
        &self,
        error: &BoxError,
        found: Classification<'_>,
        own: Option<Key>,
    ) -> String {
        match (error.downcast_ref::<Barred>(), own) {
            (Some(barred), _) => barred.advice(&self.command),
            (None, Some(own)) if found.code == code::RECORD_UNREADABLE => {
                let (short, command) = (records::short(&own), &self.command);
                format!(
                    " [record {short}: the guard needs the --records-key-file with which it was written; a person can look at it: {command} show {short}]"
                )
            }
            (None, Some(own)) if found.ran == Ran::Unknown => settles(&own, &self.command),
            _ => String::new(),
        }
    }

    /// Identifies the call under the key `own`, or one without an id, among equal calls.
    pub(crate) fn equals(&self, key: Key, own: Option<Key>) -> Equals {
        let number = || Who::Numbered(self.numbers.fetch_add(1, Ordering::Relaxed));
        Equals { key, who: own.map_or_else(number, Who::Known) }
    }

    /// Registers that the call, which has this record, may have run.
    pub(crate) fn note(&self, equals: Equals, key: Option<Key>) {
        let mut all = self.lock();
        let now = Instant::now();
        if all.len() >= MOST {
            all.retain(|_, since| since.until > now);
            let first = all.iter().min_by_key(|(_, since)| since.until).map(|(call, _)| *call);
            if let Some(first) = first.filter(|_| all.len() >= MOST) {
                all.remove(&first);
            }
        }
        all.insert((equals.key, equals.who), Since { until: now + BARS, key });
    }

    /// Registers that the call's end is known.
    pub(crate) fn settled(&self, equals: &Equals) {
        self.lock().remove(&(equals.key, equals.who));
    }

    /// The call that blocks this one for the longest time, unless that is its own record.
    pub(crate) fn bars(&self, equals: &Key, own: Option<Key>) -> Option<Barred> {
        let now = Instant::now();
        let all = self.lock();
        let equals = all.range((*equals, Who::FIRST)..=(*equals, Who::LAST)).map(|(_, it)| it);
        let others = equals.filter(|since| own.is_none() || own != since.key);
        let since = others.max_by_key(|since| since.until).filter(|since| since.until > now)?;
        Some(Barred::by(since.key, since.until - now))
    }

    /// The same, unless the store has meanwhile recorded how the blocking calls ended: a person may have
    /// settled them there, or another guard may have received their answers. If the store cannot be read,
    /// they still block.
    pub(crate) async fn still(
        &self,
        mut barred: Barred,
        equals: &Key,
        own: Option<Key>,
        store: &StoreHandle<ToolOutcome>,
    ) -> Option<Barred> {
        loop {
            let Some(key) = barred.key else { return Some(barred) };
            let is_open = match store.record(&key).await {
                Ok(Some(record)) => {
                    matches!(record.state, RecordState::Inflight | RecordState::Unknown)
                }
                Ok(None) => false,
                Err(error) => {
                    barred.is_unreadable = error.kind() == StoreErrorKind::Unreadable;
                    true
                }
            };
            if is_open {
                return Some(barred);
            }
            self.lock().remove(&(*equals, Who::Known(key)));
            barred = self.bars(equals, own)?;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(Key, Who), Since>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the server may have run the call, and has not answered.
pub(crate) fn is_unknown(end: &Result<ToolOutcome, BoxError>) -> bool {
    end.as_ref().is_err_and(|error| classify::error(&**error).end.ran == Ran::Unknown)
}

/// The call that blocks this one among the records of its conversation that another process left.
///
/// # Errors
/// If the store cannot be read: then an equal call may be among them.
pub(crate) async fn in_store(
    records: &StoreHandle<ToolOutcome>,
    call: &ToolCall,
) -> Result<Option<Barred>, NotCompared> {
    let parts = call.parts();
    let Some(session) = parts.context.session.as_deref() else { return Ok(None) };
    let digest = identity::digest(call);
    let found = records.unknown_equals(session, &digest, LISTED).await?;
    let own = parts.idempotency.id.map(|id| id.key);
    let now = SystemClock.unix_ms();
    let until = |changed_at: u64| changed_at.saturating_add(BARS.as_millis() as u64);
    let bars = |key: Key, tool: &str, until: u64| {
        let is_equal = tool == parts.tool.label() && Some(key) != own && until >= now;
        is_equal.then(|| Barred::by(Some(key), Duration::from_millis(until - now)))
    };
    let unknown = found.records.iter().find_map(|record| {
        bars(record.key.parse().ok()?, &record.tool, until(record.updated_at_ms))
    });
    Ok(unknown.or_else(|| {
        // What it does not tell is taken to be equal.
        found.unreadable.iter().find_map(|record| {
            let tool = record.tool.as_deref().unwrap_or(parts.tool.label());
            let until = record.changed_at.map_or(until(now), until);
            Some(Barred { is_unreadable: true, ..bars(record.key, tool, until)? })
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Key::from_bytes([byte; 32])
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_call_bars_its_equals_for_ten_minutes_and_not_itself() {
        let all = Unknowns::default();
        let call = all.equals(key(1), Some(key(9)));
        all.note(call, Some(key(9)));
        assert!(all.bars(&key(1), None).is_some_and(|barred| barred.key == Some(key(9))));
        assert!(all.bars(&key(1), Some(key(8))).is_some());
        assert!(all.bars(&key(1), Some(key(9))).is_none() && all.bars(&key(2), None).is_none());
        all.settled(&call);
        assert!(all.bars(&key(1), None).is_none());
        all.note(all.equals(key(1), None), None);
        tokio::time::advance(BARS).await;
        assert!(all.bars(&key(1), None).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn each_of_several_equal_calls_bars_until_its_own_end_is_known() {
        for records in [[None, None], [Some(key(8)), Some(key(9))], [None, Some(key(9))]] {
            for order in [[0, 1], [1, 0]] {
                let all = Unknowns::default();
                let calls = records.map(|record| (all.equals(key(1), record), record));
                for (call, record) in calls {
                    all.note(call, record);
                }
                if records[1].is_some() {
                    // A repeat under the same id is the same call.
                    all.note(all.equals(key(1), records[1]), records[1]);
                }
                all.settled(&calls[order[0]].0);
                let (_, left) = calls[order[1]];
                assert!(all.bars(&key(1), None).is_some_and(|barred| barred.key == left));
                all.settled(&calls[order[1]].0);
                assert!(all.bars(&key(1), None).is_none(), "{records:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_barred_call_tells_what_to_do_about_it() {
        let all = Unknowns::default();
        let call = ToolCall::new("look\u{1b}up", tr_core::Params::empty_object());
        let advice = |all: &Unknowns, call: &ToolCall| {
            let barred = all.bars(&key(1), None).unwrap().of(call).into();
            all.told(&barred, classify::error(&*barred).end, None)
        };
        all.note(all.equals(key(1), None), None);
        tokio::time::advance(Duration::from_secs(61)).await;
        let said = advice(&all, &call);
        assert!(said.contains("for another 9 min") && !said.contains("record 0"), "{said}");
        assert!(said.contains("effect = \"read_only\" for it in the guard's --catalog"), "{said}");
        assert!(said.contains("readOnlyHint") && !said.contains('\u{1b}'), "{said}");
        all.note(all.equals(key(1), Some(key(9))), Some(key(9)));
        let said = advice(&all, &call.effect(tr_core::Effect::Mutating));
        let short = &key(9).to_string()[..12];
        assert!(said.contains(&format!("tool-guard records settle {short} done")), "{said}");
        assert!(!said.contains("--catalog"), "what it does was declared: {said}");
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_as_many_as_may_be_and_the_first_goes() {
        let all = Unknowns::default();
        for number in 0..=MOST as u32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_le_bytes());
            all.note(all.equals(Key::from_bytes(bytes), None), None);
            tokio::time::advance(Duration::from_micros(1)).await;
        }
        assert_eq!(all.lock().len(), MOST);
        assert!(all.bars(&key(0), None).is_none());
    }
}
