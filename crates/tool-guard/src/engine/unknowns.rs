//! Calls of unknown outcome block equal calls, so that a model cannot repeat one under a new id.
mod blocked;
mod ends;

pub(crate) use self::{
    blocked::{BlockedByEqual, Earlier, Ended, ask_about},
    ends::{ended, leaves_unknown, left_unknown},
};

use super::{check::Made, failure::Failure};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tool_reliability::idempotency::{RecordState, Resolution, StoreHandle, store::StoreErrorKind};
use tr_core::{
    DefaultPolicy, StoreResponse, ToolOutcome,
    canonical::{Digest, Key},
    internal::lock,
};

/// How long they do.
pub(super) const BARS: Duration = Duration::from_secs(600);

/// More than occur in that time; beyond it the one that ends first is forgotten.
const MOST: usize = 10_000;

/// The bytes of all late answers that wait for an equal call; of one beyond it is said only that its call ran.
const KEPT: usize = 16 << 20;

/// Calls of this process that may have run, by the key of equal calls. Several calls may be equal: each
/// blocks the others until its own end is known.
#[derive(Debug, Default)]
pub(crate) struct Unknowns {
    /// The calls that can be asked about.
    pub(super) made: Made,
    calls: Mutex<BTreeMap<(Key, Who), Since>>,
    numbers: AtomicU64,
}

/// A call, and the key that it shares with equal calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Equals {
    /// The shared key.
    pub(crate) key: Key,
    who: Who,
    /// Names who may get the call's answer, for which params.
    owner: Digest,
    /// The credential of its caller.
    reader: Option<Digest>,
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
    /// How long after its success an equal call gets its answer.
    pub(crate) late: Option<Duration>,
    /// For how long the equal call had run that it joined.
    pub(crate) joined: Option<Duration>,
}

/// Identifies one of several equal calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// A call without an id.
    Numbered(u64),
    /// All calls with this id are one.
    Known(Key),
}

impl Equals {
    /// The equal call under this key.
    pub(super) fn of(self, key: Key) -> Self {
        Self { who: Who::Known(key), ..self }
    }
}

impl Who {
    const FIRST: Self = Self::Numbered(0);
    const LAST: Self = Self::Known(Key::from_bytes([u8::MAX; 32]));
}

#[derive(Clone, Debug)]
struct Since {
    until: Instant,
    /// Its record, if there is one.
    key: Option<Key>,
    /// What is known of it.
    earlier: Earlier,
    tool: Box<str>,
    /// Its owner and its reader, as of its [`Equals`].
    caller: Option<(Digest, Option<Digest>)>,
    /// A repeat of it has ended, and its caller has the answer: a late one is dropped.
    is_settled: bool,
    /// It succeeded after it was given up, or its tool declares that equal calls get its answer.
    late: Option<Late>,
}

/// A success whose caller may not have read it.
#[derive(Clone, Debug)]
struct Late {
    /// The answer, if it could be kept, and its size.
    answer: Option<(ToolOutcome, usize)>,
    /// When it came.
    at: Instant,
    owner: Digest,
    reader: Option<Digest>,
    /// Whether it is given each time, as its tool declares; else its caller had given up, and it is given once.
    is_declared: bool,
}

/// What there is for the caller of an equal call.
#[derive(Debug)]
pub(crate) enum Kept {
    Answer(ToolOutcome),
    /// The answer could not be kept.
    Nothing,
    /// The answer is for another credential.
    OfAnother,
}

impl Since {
    fn new(now: Instant, key: Option<Key>, earlier: Earlier, tool: &str) -> Self {
        let (until, tool) = (now + BARS, tool.into());
        Self { until, key, earlier, tool, caller: None, is_settled: false, late: None }
    }

    fn is_unknown(&self, now: Instant) -> bool {
        self.until > now && self.late.is_none() && !self.is_settled
    }
}

impl Unknowns {
    /// Identifies the call under the key `own`, or one without an id, among equal calls; its answer is its owner's, for the
    /// params with this digest.
    pub(crate) fn equals(
        &self,
        key: Key,
        own: Option<Key>,
        (owner, reader): (&str, Option<Digest>),
        params: Digest,
    ) -> Equals {
        let number = || Who::Numbered(self.numbers.fetch_add(1, Ordering::Relaxed));
        let who = own.map_or_else(number, Who::Known);
        let owner = Digest::of_bytes([owner.as_bytes(), params.as_bytes()].concat());
        Equals { key, who, owner, reader }
    }

    /// Registers that the call of this tool, which has this record, may have run.
    pub(crate) fn note(&self, equals: Equals, key: Option<Key>, earlier: Earlier, tool: &str) {
        let mut all = lock(&self.calls);
        let now = Instant::now();
        make_room(&mut all, now);
        let since = all.entry((equals.key, equals.who));
        let since = since.or_insert_with(|| Since::new(now, key, earlier, tool));
        since.is_settled = false;
        since.caller = Some((equals.owner, equals.reader));
        // A repeat of the call says nothing more of it.
        if since.late.is_none() {
            since.until = now + BARS;
        }
    }

    /// Registers that the call's answer came after its caller had given up, and does not say whether it ran.
    pub(crate) fn answered_late(&self, equals: &Equals) {
        if let Some(since) = lock(&self.calls).get_mut(&(equals.key, equals.who)) {
            since.earlier = Earlier::LateAnswer;
        }
    }

    /// Registers how the call ended after its caller had given up, which may be known before that is. If it succeeded,
    /// the caller's next equal call gets its answer.
    pub(crate) fn ended_late(&self, equals: &Equals, how: &Resolution<ToolOutcome>) {
        let answer = match how {
            Resolution::Done(end) if end.error().is_none() => Some(end),
            Resolution::DoneNotKept => None,
            _ => return drop(lock(&self.calls).remove(&(equals.key, equals.who))),
        };
        self.keep(equals, answer, None);
    }

    /// Registers the success of a call whose tool declares that equal ones get its answer for so long.
    pub(crate) fn succeeded(&self, equals: &Equals, answer: &ToolOutcome, during: Duration) {
        self.keep(equals, Some(answer), Some(during));
    }

    /// Keeps a success, for so long if its tool declares that. One that is too large is kept without its answer: its
    /// caller must learn that it ran; of a declared one it has.
    fn keep(&self, equals: &Equals, answer: Option<&ToolOutcome>, declared: Option<Duration>) {
        let (mut all, at) = (lock(&self.calls), Instant::now());
        make_room(&mut all, at);
        let size = |since: &Since| since.late.as_ref()?.answer.as_ref().map(|(_, size)| *size);
        let kept: usize = all.values().filter_map(size).sum();
        let answer = answer.map(|answer| (answer.clone(), DefaultPolicy.size_of(answer)));
        let answer = answer.filter(|(_, size)| kept + size <= KEPT);
        let is_declared = declared.is_some();
        if is_declared && answer.is_none() {
            return;
        }
        let since = all.entry((equals.key, equals.who));
        let since = since.or_insert_with(|| Since::new(at, None, Earlier::NoAnswer, ""));
        if since.is_settled && !is_declared {
            return;
        }
        if let Some(during) = declared {
            since.until = at + during;
        }
        let Equals { owner, reader, .. } = *equals;
        since.late = Some(Late { answer, at, owner, reader, is_declared });
    }

    /// The answer to a late success that is equal to this call and of the same owner, if it could be kept, and how old
    /// it is; it is given once, unless its tool declares that equal calls get it: the last says so. Only its reader gets
    /// it, and who has that one's credential among its `others`.
    pub(crate) fn take_late(
        &self,
        equals: &Equals,
        others: &[Digest],
    ) -> Option<(Kept, Duration, bool)> {
        let (mut all, now) = (lock(&self.calls), Instant::now());
        let range = (equals.key, Who::FIRST)..=(equals.key, Who::LAST);
        let is_its = |since: &Since| {
            since.until > now && since.late.as_ref().is_some_and(|it| it.owner == equals.owner)
        };
        let call = all.range(range).find_map(|(call, since)| is_its(since).then_some(*call))?;
        let late = all.get(&call)?.late.clone()?;
        let is_readable = late.reader == equals.reader
            || late.reader.is_some_and(|reader| others.contains(&reader));
        if is_readable && !late.is_declared {
            all.remove(&call);
        }
        let kept = match late.answer {
            _ if !is_readable => Kept::OfAnother,
            Some((answer, _)) => Kept::Answer(answer),
            None => Kept::Nothing,
        };
        Some((kept, now - late.at, late.is_declared))
    }

    /// Registers that the client has got the call's end, from its own record.
    pub(crate) fn received(&self, equals: &Equals) {
        let is_given = |since: &Since| since.late.as_ref().is_some_and(|it| !it.is_declared);
        self.forget(equals, is_given);
    }

    fn forget(&self, equals: &Equals, is_meant: impl Fn(&Since) -> bool) {
        let (mut all, call) = (lock(&self.calls), (equals.key, equals.who));
        if all.get(&call).is_some_and(is_meant) {
            all.remove(&call);
        }
    }

    /// Whether another caller made the call in this process.
    pub(super) fn is_anothers(&self, call: &Equals) -> bool {
        let all = lock(&self.calls);
        let caller = all.get(&(call.key, call.who)).and_then(|since| since.caller);
        caller.is_some_and(|caller| caller != (call.owner, call.reader))
    }

    /// Registers that its caller learns whether the call ran.
    pub(super) fn is_over(&self, call: &Equals, ran: bool) {
        if ran {
            self.tells_of(call);
        } else {
            self.forget(call, |_| true);
        }
    }

    /// Whether the caller of an equal call is to learn now that this one ran: it learns that once.
    pub(super) fn tells_of(&self, ran: &Equals) -> bool {
        let (mut all, now) = (lock(&self.calls), Instant::now());
        make_room(&mut all, now);
        let settled = Since { is_settled: true, ..Since::new(now, None, Earlier::NoAnswer, "") };
        all.insert((ran.key, ran.who), settled).is_none_or(|it| !it.is_settled)
    }

    /// Whether a call of this tool may have run.
    pub(crate) fn has_of(&self, tool: &str) -> bool {
        let now = Instant::now();
        lock(&self.calls).values().any(|since| since.is_unknown(now) && *since.tool == *tool)
    }

    /// The call that blocks this one for the longest time, unless that is its own record.
    pub(crate) fn bars(&self, equals: &Key, own: Option<Key>) -> Option<BlockedByEqual> {
        let now = Instant::now();
        let all = lock(&self.calls);
        let equals = all.range((*equals, Who::FIRST)..=(*equals, Who::LAST));
        let others = equals.filter(|((_, who), it)| {
            let is_own = own.is_some() && (own == it.key || own.map(Who::Known) == Some(*who));
            it.is_unknown(now) && !is_own
        });
        let ((_, who), since) = others.max_by_key(|(_, since)| since.until)?;
        let mut barred = BlockedByEqual::by(since.earlier, since.key, since.until - now);
        if let Who::Known(call) = who {
            barred.call = Some(*call);
        }
        Some(barred)
    }

    /// The same, unless the store has meanwhile recorded how the blocking calls ended: a person may have
    /// settled them there, or another guard may have received their answers. If the store cannot be read,
    /// they still block.
    pub(crate) async fn still(
        &self,
        mut barred: BlockedByEqual,
        equals: &Equals,
        own: Option<Key>,
        store: &StoreHandle<ToolOutcome>,
    ) -> Result<Option<BlockedByEqual>, Failure> {
        let is_open = |state| matches!(state, RecordState::Inflight | RecordState::Unknown);
        loop {
            let Some(key) = barred.key else { return Ok(Some(barred)) };
            let mut has_run = false;
            let is_open = match store.record(&key).await {
                Ok(record) => record.is_some_and(|it| {
                    // No caller of this guard has heard of it.
                    has_run = it.state == RecordState::Done;
                    is_open(it.state)
                }),
                Err(error) => {
                    if error.kind() == StoreErrorKind::Unreadable {
                        barred = barred.unreadable();
                    }
                    true
                }
            };
            if is_open {
                return Ok(Some(barred));
            }
            let over = equals.of(key);
            self.forget(&over, |since| since.late.is_none());
            if has_run && self.tells_of(&over) {
                return Err(Failure::RAN_BEFORE);
            }
            let Some(next) = self.bars(&equals.key, own) else { return Ok(None) };
            barred = next;
        }
    }
}

/// Forgets what has expired, and one more if there are too many.
fn make_room(all: &mut BTreeMap<(Key, Who), Since>, now: Instant) {
    all.retain(|_, since| since.until > now);
    if all.len() >= MOST
        && let Some((&first, _)) = all.iter().min_by_key(|(_, since)| since.until)
    {
        all.remove(&first);
    }
}

#[cfg(test)]
mod tests;
