//! Equal calls that no strong id tells apart: one that runs, or whose client vanished before its answer, may be the
//! one that is asked for again.
//!
//! Who may get the answer: the session of the call, a later session of the same credential, and without sessions the
//! credential, else the connection. All others are refused, with the earlier call's state and without its answer.
use super::unknowns::Ended;
use indexmap::IndexMap;
use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tr_core::{Json, canonical::Digest, internal::lock};

/// How long after the cut a call counts as the same.
const HELD: Duration = Duration::from_secs(60);

/// How long a call waits for the news that the client of an equal one has vanished: a client may send its call
/// again before the system tells the guard that its connection has ended.
const SOON: Duration = Duration::from_millis(250);

/// How long a request is known to have joined another call: as long as calls without an id are remembered.
const JOINED: Duration = Duration::from_secs(600);

/// More clients than vanish in that time; beyond it the oldest is forgotten.
const MOST: usize = 1_000;

/// A call that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What equal calls of its credential and conversation have in common.
    pub(crate) equals: Digest,
    /// Who may get its answer.
    pub(crate) owner: Box<str>,
    /// The credential that reads its answer, and the others of its caller in its session.
    pub(crate) credential: Option<Digest>,
    pub(crate) others: Vec<Digest>,
    /// Its session or connection, in which its weak id names it.
    pub(crate) place: Box<str>,
    /// When the owner's session began, if a call of an earlier one of its credential may be continued.
    pub(crate) since: Option<Instant>,
    /// Its client's weak id.
    pub(crate) weak_id: Option<Box<str>>,
    /// How long an equal call of its owner has run that this one joins; `None` if it never joins one.
    pub(crate) joins_after: Option<Duration>,
}

/// The calls without a strong id, each by the id that it got here.
#[derive(Clone, Debug, Default)]
pub(crate) struct EqualCalls(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// How long an equal call without an id has run that another one joins.
    joins_after: Option<Duration>,
    table: Mutex<Table>,
    /// Tells that a call is over, or was cut off.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    /// The calls that run, by what equal ones have in common.
    running: HashMap<Digest, Vec<Run>>,
    /// The calls that were cut off, the oldest first.
    cuts: VecDeque<CutOff>,
    /// By the ids of requests: the calls that they joined, and since when.
    joined: IndexMap<Box<str>, (Box<str>, Instant)>,
    /// The calls of which a client has the answer, the oldest first: another one that vanishes is no cut.
    received: VecDeque<(Box<str>, Instant)>,
}

#[derive(Debug)]
struct Run {
    call: Arc<Call>,
    id: Box<str>,
    begun: Instant,
}

/// A call that was cut off.
#[derive(Debug)]
struct CutOff {
    call: Arc<Call>,
    id: Box<str>,
    at: Instant,
    end: End,
}

/// How a call ended; nothing while it runs.
pub(crate) type End = Arc<Mutex<Option<Ended>>>;

/// What becomes of a call that begins.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It runs, or shares the end of the call whose id it has got.
    As(Uncut),
    /// It is refused: an equal call of another client was cut off, and runs, or has ended so.
    Refused(Option<Ended>),
}

/// A call without a strong id, until its client has the answer.
#[derive(Debug)]
pub(crate) struct Uncut {
    all: EqualCalls,
    call: Arc<Call>,
    id: Box<str>,
    /// Where its end is noted.
    pub(crate) end: End,
    /// For how long the call that it joined had run.
    pub(crate) joined: Option<Duration>,
}

impl EqualCalls {
    /// Calls that join an equal one which has run for this long, if there is such a time.
    pub(crate) fn joining(joins_after: Option<Duration>) -> Self {
        Self(Arc::new(Shared { joins_after, ..Shared::default() }))
    }

    /// How long an equal call has run that a call with these params joins. One without any may always be meant.
    pub(crate) fn joins_after(&self, params: &Json) -> Option<Duration> {
        let has_none = params.get().chars().all(|c| c.is_ascii_whitespace() || "{}".contains(c));
        self.0.joins_after.filter(|_| !has_none)
    }

    /// Begins a call of a request with this id: under the id of the call that the same request joined before, of one
    /// with the same weak id, of the oldest equal one that was cut off, which is taken once, of one that has run for
    /// long, or under its `own`.
    pub(crate) async fn begin(&self, call: Call, own: Box<str>) -> Begun {
        let (call, until) = (Arc::new(call), Instant::now() + SOON);
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if let Some(begun) = self.same(&call, &own) {
                return begun;
            }
            let is_other = |runs: &Vec<Run>| runs.iter().all(|run| run.id != own);
            if !lock(&self.0.table).running.get(&call.equals).is_some_and(is_other)
                || timeout_at(until, changed).await.is_err()
            {
                return Begun::As(self.run(call, own, None));
            }
        }
    }

    /// Begins a call of a connection that carries one client for good.
    pub(crate) fn begin_now(&self, call: Call, own: Box<str>) -> Uncut {
        let running = lock(&self.0.table).long_running(&call);
        let (id, joined) = running.map_or((own, None), |(id, ran)| (id, Some(ran)));
        self.run(Arc::new(call), id, joined)
    }

    /// The earlier call that this one is, or that stands in its way.
    fn same(&self, call: &Arc<Call>, own: &str) -> Option<Begun> {
        let mut table = lock(&self.0.table);
        let same = table.joined(own, &call.equals).or_else(|| table.same_request(call, own));
        let (id, ran) = match same.or_else(|| table.continued(call)) {
            Some(id) => (id, None),
            None => {
                let mut others = table.cuts.iter().filter(|cut| cut.call.equals == call.equals);
                let bars = |cut: &CutOff| {
                    let end = *lock(&cut.end);
                    // The records know of one of unknown outcome, and for longer.
                    (!matches!(end, Some(Ended::Not | Ended::Unknown))).then_some(end)
                };
                if let Some(end) = others.find_map(bars) {
                    return Some(Begun::Refused(end));
                }
                let (id, ran) = table.long_running(call)?;
                (id, Some(ran))
            }
        };
        if table.is_secret(call, &id) {
            return Some(Begun::Refused(None));
        }
        table.join(own, &id);
        drop(table);
        Some(Begun::As(self.run(call.clone(), id, ran)))
    }

    fn run(&self, call: Arc<Call>, id: Box<str>, joined: Option<Duration>) -> Uncut {
        let begun = Instant::now();
        let mut table = lock(&self.0.table);
        let runs = table.running.entry(call.equals).or_default();
        // One that joins another began with it.
        let begun = runs.iter().find(|run| run.id == id).map_or(begun, |run| run.begun);
        runs.push(Run { call: call.clone(), id: id.clone(), begun });
        drop(table);
        Uncut { all: self.clone(), call, id, end: End::default(), joined }
    }
}

impl Call {
    /// Whether the other one's answer is for its caller, too.
    fn may_read(&self, other: &Self) -> bool {
        self.credential == other.credential
            || other.credential.is_some_and(|it| self.others.contains(&it))
    }
}

/// What equal calls of a caller and a conversation have in common.
pub(crate) fn equals(
    caller: &str,
    conversation: Option<&str>,
    tool: &str,
    arguments: Digest,
    continues: Option<Digest>,
) -> Digest {
    let conversation = conversation.unwrap_or_default();
    let continues = continues.map(|digest| digest.to_string()).unwrap_or_default();
    let lengths = [caller, conversation, tool].map(str::len);
    let all = format!("{lengths:?} {caller} {conversation} {tool} {arguments} {continues}");
    Digest::of_bytes(all)
}

/// An id of the guard's for a call.
pub(crate) fn own_id() -> Box<str> {
    format!("{:032x}", fastrand::u128(..)).into()
}

impl Uncut {
    /// The id by which the call is recognized.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Notes that the client vanished without the answer.
    pub(crate) fn cut(self) -> Cut {
        let mut table = lock(&self.all.0.table);
        if !table.received.iter().any(|(received, _)| *received == self.id) {
            let (call, id, end) = (self.call.clone(), self.id.clone(), self.end.clone());
            table.note(CutOff { call, id, at: Instant::now(), end });
        }
        Cut { all: self.all.clone(), end: self.end.clone() }
    }

    /// Notes that the client has the answer, for whichever of its requests: the next equal call is another.
    pub(crate) fn received(self) {
        let mut table = lock(&self.all.0.table);
        table.expire();
        table.cuts.retain(|cut| cut.id != self.id);
        if table.received.len() == MOST {
            table.received.pop_front();
        }
        table.received.push_back((self.id.clone(), Instant::now()));
    }
}

/// A call whose client vanished.
#[derive(Debug)]
pub(crate) struct Cut {
    all: EqualCalls,
    /// Where its end is noted, by which it is found.
    end: End,
}

impl Cut {
    /// The client is back; `None` if it has sent the call again meanwhile.
    pub(crate) fn withdraw(self) -> Option<Uncut> {
        let mut table = lock(&self.all.0.table);
        let at = table.cuts.iter().position(|cut| Arc::ptr_eq(&cut.end, &self.end))?;
        let CutOff { call, id, end, .. } = table.cuts.remove(at)?;
        drop(table);
        let mut uncut = self.all.run(call, id, None);
        uncut.end = end;
        Some(uncut)
    }
}

impl Drop for Uncut {
    fn drop(&mut self) {
        let mut table = lock(&self.all.0.table);
        if let Some(runs) = table.running.get_mut(&self.call.equals) {
            if let Some(at) = runs.iter().position(|run| run.id == self.id) {
                runs.swap_remove(at);
            }
            if runs.is_empty() {
                table.running.remove(&self.call.equals);
            }
        }
        drop(table);
        self.all.0.changed.notify_waiters();
    }
}

impl Table {
    fn expire(&mut self) {
        while self.cuts.front().is_some_and(|cut| cut.at.elapsed() >= HELD) {
            self.cuts.pop_front();
        }
        while self.received.front().is_some_and(|(_, at)| at.elapsed() >= HELD) {
            self.received.pop_front();
        }
    }

    /// Notes the call that a request joined, unless it is its own; beyond [`MOST`] the oldest is forgotten.
    fn join(&mut self, own: &str, id: &str) {
        if own == id {
            return;
        }
        self.joined.retain(|_, (_, since)| since.elapsed() < JOINED);
        self.joined.shift_remove(own);
        if self.joined.len() == MOST {
            self.joined.shift_remove_index(0);
        }
        self.joined.insert(own.into(), (id.into(), Instant::now()));
    }

    /// The call that this request joined before. If it was cut off again, this takes its place.
    fn joined(&mut self, own: &str, equals: &Digest) -> Option<Box<str>> {
        let id = self.joined.get(own)?.0.clone();
        self.withdraw(|cut| cut.call.equals == *equals && cut.id == id);
        Some(id)
    }

    /// The oldest call that was cut off and may be continued by this one, which takes its place.
    fn continued(&mut self, call: &Call) -> Option<Box<str>> {
        self.expire();
        self.withdraw(|cut| {
            cut.call.equals == call.equals
                && call.may_read(&cut.call)
                && (cut.call.owner == call.owner || call.since.is_some_and(|since| since > cut.at))
        })
    }

    /// Whether the call that runs under this id has a credential whose answers this one may not read.
    fn is_secret(&self, call: &Call, id: &str) -> bool {
        let runs = self.running.get(&call.equals);
        runs.into_iter().flatten().any(|run| *run.id == *id && !call.may_read(&run.call))
    }

    /// The call that runs for the same request, or under the same weak id.
    fn same_request(&self, call: &Call, own: &str) -> Option<Box<str>> {
        let is_same = |run: &&Run| {
            let has_weak_id = call.weak_id.is_some() && run.call.weak_id == call.weak_id;
            *run.id == *own || has_weak_id && run.call.place == call.place
        };
        self.running.get(&call.equals)?.iter().find(is_same).map(|run| run.id.clone())
    }

    /// The call of the same owner that has run for so long that this one joins it.
    fn long_running(&self, call: &Call) -> Option<(Box<str>, Duration)> {
        let after = call.joins_after?;
        let is_long = |run: &&Run| {
            run.call.owner == call.owner
                && run.call.joins_after.is_some()
                && run.begun.elapsed() >= after
        };
        let run = self.running.get(&call.equals)?.iter().find(is_long)?;
        Some((run.id.clone(), run.begun.elapsed()))
    }

    /// Notes a call that was cut off; beyond [`MOST`] one is forgotten.
    fn note(&mut self, cut: CutOff) {
        self.expire();
        if self.cuts.len() == MOST {
            // One that runs could run twice.
            let at = self.cuts.iter().position(|cut| lock(&cut.end).is_some()).unwrap_or_default();
            self.cuts.remove(at);
        }
        self.cuts.push_back(cut);
    }

    /// Forgets the oldest such call; returns its id.
    fn withdraw(&mut self, is_it: impl Fn(&CutOff) -> bool) -> Option<Box<str>> {
        let at = self.cuts.iter().position(is_it)?;
        self.cuts.remove(at).map(|cut| cut.id)
    }
}

#[cfg(test)]
mod tests;
