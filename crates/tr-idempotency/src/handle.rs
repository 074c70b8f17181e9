//! Listing, settling and clearing records: for operators and tests.
use crate::{
    end::State,
    local::{Store, claim::Delivery, notes::Notes, table::Entry},
    protocol::Ttls,
    record::{DedupeRecord, RecordState, StateCount},
    remote::client::Client,
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tr_core::{DedupeScope, DefaultPolicy, StoreResponse, canonical::Key};

/// Lists, settles and clears the records of one layer.
pub struct Handle<V> {
    pub(crate) store: Arc<Store<V>>,
    pub(crate) ttls: Ttls,
    pub(crate) remote: Option<Arc<Client<V>>>,
}

/// How a call of unknown outcome ended, as an operator found out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Resolution<V> {
    /// It ran, and this is its response: duplicates get it from now on.
    Done(V),
    /// It ran, and its response is lost: duplicates get `AnswerNotKept`.
    DoneNotKept,
    /// It did not run: it may be claimed again.
    DidNotRun,
}

/// Which records to select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter<'f> {
    /// The record of this key.
    Key(&'f Key),
    /// The records of this session.
    Session(&'f str),
    /// The records of tools whose label has this prefix.
    Tool(&'f str),
}

/// Error: there is no call of unknown outcome under this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no call of unknown outcome has this key")]
pub struct NotUnknown(pub(crate) ());

/// The number of records and waiters in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// All records.
    pub records: usize,
    /// Calls in flight.
    pub inflight: usize,
    /// Calls of unknown outcome.
    pub unknown: usize,
    /// Callers that wait for a call in flight.
    pub waiters: usize,
}

impl<V> Resolution<V> {
    /// The state to record.
    pub(crate) fn into_state(self) -> State<V> {
        match self {
            Self::Done(value) => State::Done(Some(value)),
            Self::DoneNotKept => State::Done(None),
            Self::DidNotRun => State::Cancelled(None),
        }
    }
}

impl<V> Handle<V> {
    /// The record of this key.
    #[must_use]
    pub fn record(&self, key: &Key) -> Option<DedupeRecord> {
        self.store.record(key)
    }

    /// The [epoch](DedupeRecord::epoch) of the record of this key: of the run in flight, to
    /// [settle](Self::settle_run) that run once it is over.
    #[must_use]
    pub fn epoch(&self, key: &Key) -> Option<u64> {
        let table = self.store.shard(key).lock();
        table.get(key).map(|(entry, _)| entry.record.token.epoch)
    }

    /// All records, in no order. Locks one shard after the other.
    #[must_use]
    pub fn records(&self) -> Vec<DedupeRecord> {
        self.store.select(|_, _| true)
    }

    /// Calls that have been in flight for longer than their lease: slow or hung.
    #[must_use]
    pub fn stale(&self) -> Vec<DedupeRecord> {
        let now = self.store.common.clock.exactly();
        self.store.select(|entry, _| {
            matches!(entry.record.state, State::Inflight) && now >= entry.record.until
        })
    }

    /// Calls that may have run, with an outcome that was not recorded.
    #[must_use]
    pub fn unknown(&self) -> Vec<DedupeRecord> {
        self.store.select(|entry, _| matches!(entry.record.state, State::Unknown(_)))
    }

    /// The number of records and waiters in this process.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for shard in self.store.shards() {
            let table = shard.lock();
            counts.records += table.len();
            for (entry, _) in table.slots() {
                counts.inflight += usize::from(matches!(entry.record.state, State::Inflight));
                counts.unknown += usize::from(matches!(entry.record.state, State::Unknown(_)));
                counts.waiters += entry.waiters.len();
            }
        }
        counts
    }

    /// The number of records of each tool, by scope and state, and their longest time to live: for
    /// gauges. Locks one shard after the other.
    #[must_use]
    pub fn state_counts(&self) -> Vec<StateCount> {
        let now = self.store.common.clock.exactly();
        let mut all: HashMap<(String, DedupeScope, RecordState), (u64, u64, u64)> = HashMap::new();
        for shard in self.store.shards() {
            let table = shard.lock();
            for (entry, notes) in table.slots() {
                let state = RecordState::of(entry.record.state.phase());
                let of = all.entry((notes.tool().to_owned(), notes.scope(), state)).or_default();
                let kept = entry.record.until.saturating_sub(entry.record.changed_at);
                let is_stale = state == RecordState::Inflight && now >= entry.record.until;
                *of = (of.0 + 1, of.1 + u64::from(is_stale), of.2.max(kept));
            }
        }
        let holding = |((tool, scope, state), (records, stale, kept))| {
            let ttl = Duration::from_millis(kept);
            StateCount { tool, scope, state, records, stale, ttl }
        };
        all.into_iter().map(holding).collect()
    }

    /// Records how a call of unknown outcome ended, with a response of `size` bytes. The response
    /// counts in [`max_kept_bytes`](crate::Builder::max_kept_bytes); past that, the record keeps
    /// the state without the response. With a `run`, only the run of this
    /// [epoch](DedupeRecord::epoch), so that a later run of the same call is not settled by mistake.
    ///
    /// # Errors
    /// If there is no record of unknown outcome under this key, or it is another run's.
    pub fn settle_sized(
        &self,
        key: &Key,
        run: Option<u64>,
        how: Resolution<V>,
        size: usize,
    ) -> Result<(), NotUnknown> {
        let settled = self.store.settle(key, run, how.into_state(), size, &self.ttls);
        if settled { Ok(()) } else { Err(NotUnknown(())) }
    }

    /// Deletes the record of this key, whatever its state; `false` if there is none.
    ///
    /// A repeat then runs again, even if the call is in flight or may have run. A call in flight
    /// goes on, its end is not recorded, and its waiters get `outcome_unknown`.
    #[must_use = "says whether there was a record"]
    pub fn clear(&self, key: &Key) -> bool {
        let gone = self.store.shard(key).lock().clear(key);
        gone.is_some()
    }

    /// Deletes a record of unknown outcome: the store's record has been settled.
    pub(crate) fn forget_unknown(&self, key: &Key) {
        let mut table = self.store.shard(key).lock();
        let found = table.get(key).is_some_and(|(entry, _)| entry.record.state.is_unknown());
        let gone = if found { table.clear(key) } else { None };
        drop(table);
        drop(gone);
    }

    /// Cancels the call in flight with this key in this process, whether or not its caller still
    /// waits; `false` if there is none.
    ///
    /// The call's future is dropped at its next await, and not retried: before the tool can have
    /// started it is recorded as cancelled, after that as unknown. The caller gets
    /// [`Cancelled`](crate::error::Cancelled), the waiters a shared failure with the same code.
    #[must_use = "says whether there was a call in flight"]
    pub fn cancel(&self, key: &Key) -> bool {
        let driver = self.store.shard(key).lock().cancel(key);
        if let Some(Some(driver)) = &driver {
            driver.wake_by_ref();
        }
        driver.is_some()
    }

    /// How many records [`flush`](Self::flush) would delete.
    #[must_use]
    pub fn count(&self, filter: Filter<'_>) -> usize {
        let shards = self.store.shards();
        let meant =
            |(entry, notes): &(&Entry<V, Delivery<V>>, &Notes)| filter.flushes(entry, notes);
        shards.map(|shard| shard.lock().slots().filter(meant).count()).sum()
    }

    /// Deletes settled records and returns how many. Calls in flight stay, and so do mutating calls
    /// of unknown outcome: [settle](Self::settle) or [clear](Self::clear) those one by one.
    #[must_use = "says how many"]
    pub fn flush(&self, filter: Filter<'_>) -> usize {
        let mut count = 0;
        for shard in self.store.shards() {
            let gone = shard.lock().forget_all(|entry, notes| filter.flushes(entry, notes));
            count += gone.len();
        }
        count
    }

    /// Deletes every expired record. Each claim also deletes a few.
    pub fn sweep(&self) {
        let now = self.store.common.clock.exactly();
        for shard in self.store.shards() {
            let gone = shard.lock().sweep(now);
            drop(gone);
        }
    }
}

/// For responses whose size is known without the layer's codec:
/// [`ToolOutcome`](tr_core::ToolOutcome)s.
impl<V> Handle<V>
where
    DefaultPolicy: StoreResponse<V, Stored = V>,
{
    /// Records how a call of unknown outcome ended. Its response counts in
    /// [`max_kept_bytes`](crate::Builder::max_kept_bytes), as with
    /// [`settle_sized`](Self::settle_sized).
    ///
    /// # Errors
    /// If there is no record of unknown outcome under this key.
    pub fn settle(&self, key: &Key, how: Resolution<V>) -> Result<(), NotUnknown> {
        let size = size_of(&how);
        self.settle_sized(key, None, how, size)
    }

    /// Records how the run of this [epoch](DedupeRecord::epoch) ended, as with
    /// [`settle_sized`](Self::settle_sized).
    ///
    /// # Errors
    /// If there is no record of unknown outcome under this key, or it is another run's.
    pub fn settle_run(&self, key: &Key, epoch: u64, how: Resolution<V>) -> Result<(), NotUnknown> {
        let size = size_of(&how);
        self.settle_sized(key, Some(epoch), how, size)
    }
}

fn size_of<V>(how: &Resolution<V>) -> usize
where
    DefaultPolicy: StoreResponse<V, Stored = V>,
{
    match how {
        Resolution::Done(answer) => StoreResponse::<V>::size_of(&DefaultPolicy, answer),
        _ => 0,
    }
}

impl Filter<'_> {
    fn flushes<V>(&self, entry: &Entry<V, Delivery<V>>, notes: &Notes) -> bool {
        let meant = match *self {
            Self::Key(key) => entry.key == *key,
            Self::Session(session) => notes.session() == Some(session),
            Self::Tool(prefix) => notes.tool().starts_with(prefix),
        };
        meant && !entry.record.is_pinned()
    }
}

impl<V> Clone for Handle<V> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), ttls: self.ttls, remote: self.remote.clone() }
    }
}

tr_core::debug_parts! { Handle<V>, |it| counts = it.counts() }
