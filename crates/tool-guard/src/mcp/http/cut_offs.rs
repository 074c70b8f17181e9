//! Calls whose clients vanished before the answer: the same call, sent once more without an id, is the same.
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use tr_core::canonical::Digest;

/// How long after the cut a call counts as the same.
const HELD: Duration = Duration::from_secs(60);

/// More clients than vanish in that time; beyond it the oldest is forgotten.
const MOST: usize = 1_000;

/// The calls that were cut off, each by the id that it got here.
#[derive(Clone, Debug, Default)]
pub(crate) struct CutOffs(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// By caller, tool and arguments: the calls, the oldest first.
    calls: HashMap<Digest, VecDeque<u64>>,
    /// The ids, and when they were cut off.
    order: VecDeque<(u64, Instant, Digest)>,
    ids: HashMap<u64, Box<str>>,
    next: u64,
}

impl CutOffs {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().order.is_empty()
    }

    /// Adds a call that was cut off.
    pub(crate) fn note(&self, call: Digest, id: Box<str>) {
        let mut table = self.lock();
        table.expire();
        if table.order.len() == MOST {
            table.forget_first();
        }
        let number = table.next;
        table.next += 1;
        table.order.push_back((number, Instant::now(), call));
        table.ids.insert(number, id);
        table.calls.entry(call).or_default().push_back(number);
    }

    /// Takes the oldest such call that was cut off: it is taken once.
    pub(crate) fn take(&self, call: &Digest) -> Option<Box<str>> {
        let mut table = self.lock();
        table.expire();
        let calls = table.calls.get_mut(call)?;
        let number = calls.pop_front()?;
        if calls.is_empty() {
            table.calls.remove(call);
        }
        table.ids.remove(&number)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn expire(&mut self) {
        while self.order.front().is_some_and(|(_, since, _)| since.elapsed() >= HELD) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((number, _, call)) = self.order.pop_front() else { return };
        if self.ids.remove(&number).is_some()
            && let Some(calls) = self.calls.get_mut(&call)
        {
            calls.retain(|it| *it != number);
            if calls.is_empty() {
                self.calls.remove(&call);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn each_cut_off_call_is_joined_once_and_for_a_minute() {
        let cuts = CutOffs::default();
        let [pay, other] = ["pay", "other"].map(Digest::of_bytes);
        cuts.note(pay, "1".into());
        cuts.note(pay, "2".into());
        assert_eq!(cuts.take(&other), None);
        assert_eq!([(); 3].map(|()| cuts.take(&pay)), [Some("1".into()), Some("2".into()), None]);
        cuts.note(pay, "3".into());
        advance(HELD).await;
        assert_eq!(cuts.take(&pay), None);
        assert!(cuts.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_as_many_as_may_be_and_the_first_goes() {
        let cuts = CutOffs::default();
        for number in 0..=MOST {
            cuts.note(Digest::of_bytes(number.to_string()), number.to_string().into());
        }
        assert_eq!(cuts.take(&Digest::of_bytes("0")), None);
        assert_eq!(cuts.take(&Digest::of_bytes("1")), Some("1".into()));
        assert_eq!(cuts.lock().ids.len(), MOST - 1);
    }
}
