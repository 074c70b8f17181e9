//! Calls whose clients vanished before the answer: the same call, sent once more without an id, is the same.
use super::presence::Presence;
use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tr_core::canonical::Digest;

/// How long after the cut a call counts as the same.
const HELD: Duration = Duration::from_secs(60);

/// How long a call waits for the news that the client of an equal one has vanished: a client may send its call
/// again before the system tells the guard that its connection has ended.
const SOON: Duration = Duration::from_millis(250);

/// How long a request is known to have joined another call: as long as calls without an id are remembered.
const JOINED: Duration = Duration::from_secs(600);

/// More clients than vanish in that time; beyond it the oldest is forgotten.
const MOST: usize = 1_000;

/// The calls without an id of their own, each by the id that it got here.
#[derive(Clone, Debug, Default)]
pub(crate) struct CutOffs(Arc<Inside>);

#[derive(Debug, Default)]
struct Inside {
    table: Mutex<Table>,
    /// Tells that a call is over, or was cut off.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    /// By caller, tool and arguments: the calls that run.
    running: HashMap<Digest, Vec<Box<str>>>,
    /// The calls that were cut off, the oldest first.
    cuts: VecDeque<CutOff>,
    next: u64,
    /// By the ids of requests: the calls that they joined, and since when.
    joined: HashMap<Box<str>, (Box<str>, Instant)>,
}

/// A call that was cut off.
#[derive(Debug)]
struct CutOff {
    number: u64,
    call: Digest,
    id: Box<str>,
    at: Instant,
}

/// A call without an id of its own, until its client has the answer.
#[derive(Debug)]
pub(crate) struct Uncut {
    all: CutOffs,
    call: Digest,
    id: Box<str>,
}

impl CutOffs {
    /// Begins a call: under the id of the call that the same request joined before, of the oldest equal one that
    /// was cut off, which is taken once, or under its `own`.
    pub(crate) async fn begin(&self, call: Digest, own: Box<str>) -> Uncut {
        let until = Instant::now() + SOON;
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            let joined = self.lock().joined(&own, &call);
            if let Some(id) = joined {
                return self.run(call, id);
            }
            if let Some(id) = self.take(&call) {
                self.lock().join(own, id.clone());
                return self.run(call, id);
            }
            let is_other = |ids: &Vec<Box<str>>| !ids.contains(&own);
            if !self.lock().running.get(&call).is_some_and(is_other)
                || timeout_at(until, changed).await.is_err()
            {
                return self.run(call, own);
            }
        }
    }

    fn run(&self, call: Digest, id: Box<str>) -> Uncut {
        self.lock().running.entry(call).or_default().push(id.clone());
        Uncut { all: self.clone(), call, id }
    }

    fn note(&self, call: Digest, id: Box<str>) -> u64 {
        let mut table = self.lock();
        table.expire();
        if table.cuts.len() == MOST {
            table.cuts.pop_front();
        }
        let number = table.next;
        table.next += 1;
        table.cuts.push_back(CutOff { number, call, id, at: Instant::now() });
        number
    }

    fn take(&self, call: &Digest) -> Option<Box<str>> {
        let mut table = self.lock();
        table.expire();
        table.withdraw(|cut| cut.call == *call)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Uncut {
    /// The id by which the call is recognised.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Notes that the client vanished without the answer.
    pub(crate) fn cut(self) -> Cut {
        let number = self.all.note(self.call, self.id.clone());
        Cut { all: self.all.clone(), call: self.call, number }
    }
}

/// A call whose client vanished.
#[derive(Debug)]
pub(crate) struct Cut {
    all: CutOffs,
    call: Digest,
    number: u64,
}

impl Cut {
    /// The client is back; `None` if it has sent the call again meanwhile.
    pub(crate) fn withdraw(self) -> Option<Uncut> {
        let id = self.all.lock().withdraw(|cut| cut.number == self.number)?;
        Some(self.all.run(self.call, id))
    }
}

/// What carries the answer to the client knows of it: whether it is there, and its call if that has no id, over which
/// the first that takes it watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    call: Arc<Mutex<Option<Uncut>>>,
    presence: Presence,
}

impl Watched {
    pub(crate) fn new(call: Option<Uncut>) -> Self {
        Self { call: Arc::new(Mutex::new(call)), presence: Presence::default() }
    }

    pub(crate) fn take(&self) -> Option<Uncut> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether its client is there.
    pub(crate) const fn presence(&self) -> &Presence {
        &self.presence
    }
}

impl Drop for Uncut {
    fn drop(&mut self) {
        let mut table = self.all.lock();
        if let Some(ids) = table.running.get_mut(&self.call) {
            if let Some(at) = ids.iter().position(|id| *id == self.id) {
                ids.swap_remove(at);
            }
            if ids.is_empty() {
                table.running.remove(&self.call);
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
    }

    /// Notes the call that a request joined; beyond [`MOST`] the oldest is forgotten.
    fn join(&mut self, own: Box<str>, id: Box<str>) {
        self.joined.retain(|_, (_, since)| since.elapsed() < JOINED);
        if self.joined.len() == MOST {
            let oldest = self.joined.iter().min_by_key(|(_, (_, since))| *since);
            let oldest = oldest.map(|(own, _)| own.clone());
            oldest.and_then(|oldest| self.joined.remove(&oldest));
        }
        self.joined.insert(own, (id, Instant::now()));
    }

    /// The call that this request joined before. If it was cut off again, this takes its place.
    fn joined(&mut self, own: &str, call: &Digest) -> Option<Box<str>> {
        let id = self.joined.get(own)?.0.clone();
        self.withdraw(|cut| cut.call == *call && cut.id == id);
        Some(id)
    }

    /// Forgets the oldest such call; returns its id.
    fn withdraw(&mut self, is_it: impl Fn(&CutOff) -> bool) -> Option<Box<str>> {
        let at = self.cuts.iter().position(is_it)?;
        self.cuts.remove(at).map(|cut| cut.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn calls() -> [Digest; 2] {
        ["pay", "other"].map(Digest::of_bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn each_cut_off_call_is_joined_once_and_for_a_minute() {
        let (cuts, [pay, other]) = (CutOffs::default(), calls());
        cuts.note(pay, "1".into());
        cuts.note(pay, "2".into());
        assert_eq!(cuts.take(&other), None);
        assert_eq!([(); 3].map(|()| cuts.take(&pay)), [Some("1".into()), Some("2".into()), None]);
        cuts.note(pay, "3".into());
        advance(HELD).await;
        assert_eq!(cuts.take(&pay), None);
        assert!(cuts.lock().cuts.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeat_that_is_faster_than_the_news_of_the_cut_waits_for_it() {
        let (cuts, [pay, other]) = (CutOffs::default(), calls());
        let first = cuts.begin(pay, "1".into()).await;
        let begun = Instant::now();
        // Another call, and the same request sent once more, do not wait.
        assert_eq!(cuts.begin(other, "2".into()).await.id(), "2");
        assert_eq!(cuts.begin(pay, "1".into()).await.id(), "1");
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let (repeat, ()) = tokio::join!(cuts.begin(pay, "3".into()), async {
            advance(SOON / 2).await;
            first.cut();
        });
        assert_eq!(repeat.id(), "1");
        // One that is meant waits for a moment, and is a call of its own.
        assert_eq!(cuts.begin(pay, "4".into()).await.id(), "4");
        assert!(begun.elapsed() >= SOON);
        drop(repeat);
        assert!(cuts.lock().running.is_empty());
    }

    /// Seed 102, round 305 of `tests/kills` over HTTP: a repeat under another id joins the call, its answer counts as
    /// received though its client vanished, too, and the same bytes come again.
    #[tokio::test(start_paused = true)]
    async fn a_request_that_joined_a_call_joins_it_again() {
        let (cuts, [pay, other]) = (CutOffs::default(), calls());
        cuts.begin(pay, "1".into()).await.cut();
        assert_eq!(cuts.begin(pay, "2".into()).await.id(), "1");
        assert_eq!(cuts.begin(pay, "2".into()).await.id(), "1");
        // It was cut off again: the same request takes its place, and leaves none for a call that is meant.
        cuts.begin(pay, "2".into()).await.cut();
        assert_eq!(cuts.begin(pay, "2".into()).await.id(), "1");
        assert_eq!(cuts.begin(pay, "3".into()).await.id(), "3");
        advance(JOINED).await;
        cuts.note(other, "4".into());
        assert_eq!(cuts.begin(other, "5".into()).await.id(), "4");
        assert_eq!(cuts.lock().joined.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn of_more_joins_than_are_kept_the_oldest_is_forgotten() {
        let (cuts, [pay, other]) = (CutOffs::default(), calls());
        for number in 0..=MOST {
            cuts.note(other, format!("of-{number}").into());
            cuts.begin(other, format!("{number}").into()).await;
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(cuts.lock().joined.len(), MOST);
        let joined = |own: String| cuts.lock().joined(&own, &pay);
        assert_eq!(joined(MOST.to_string()), Some(format!("of-{MOST}").into()));
        assert_eq!(joined("0".into()), None);
        assert_eq!(joined("1".into()), Some("of-1".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_back_was_not_cut_off() {
        let (cuts, [pay, _]) = (CutOffs::default(), calls());
        let cut = cuts.begin(pay, "1".into()).await.cut();
        let back = cut.withdraw().unwrap();
        assert_eq!((cuts.take(&pay), back.id()), (None, "1"));
        let cut = back.cut();
        assert_eq!(cuts.take(&pay), Some("1".into()));
        assert!(cut.withdraw().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answered_call_is_not_waited_for() {
        let (cuts, [pay, _]) = (CutOffs::default(), calls());
        let first = cuts.begin(pay, "1".into()).await;
        let begun = Instant::now();
        let (second, ()) = tokio::join!(cuts.begin(pay, "2".into()), async { drop(first) });
        assert_eq!((second.id(), begun.elapsed()), ("2", Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_as_many_as_may_be_and_the_first_goes() {
        let cuts = CutOffs::default();
        for number in 0..=MOST {
            cuts.note(Digest::of_bytes(number.to_string()), number.to_string().into());
        }
        assert_eq!(cuts.take(&Digest::of_bytes("0")), None);
        assert_eq!(cuts.take(&Digest::of_bytes("1")), Some("1".into()));
        assert_eq!(cuts.lock().cuts.len(), MOST - 1);
    }
}
