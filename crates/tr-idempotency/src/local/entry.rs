//! One record, with what only this process knows.
use super::{
    apply::{LocalClaim, Waiters},
    budget::Reserved,
    shard::Common,
};
use crate::{
    end::{Failure, RecordedFailure, State},
    protocol::{self, Again, Ask, Millis, Record},
};
use serde::{Deserialize, Serialize};
use std::{mem, sync::Arc, time::Duration};
use tr_core::{MatchedOn, Replay, canonical::Key};

/// The most earlier runs that are kept; the oldest is dropped first.
pub(crate) const RUNS: usize = 16;

/// One record.
#[derive(Debug)]
pub(crate) struct Entry<V> {
    pub(crate) key: Key,
    /// The hash of the key.
    pub(crate) hash: u64,
    pub(crate) record: Record<Option<V>, Failure<V>>,
    pub(crate) waiters: Waiters<V>,
    pub(crate) caller: Caller,
    /// The bytes of its response, if it is large.
    pub(crate) reserved: Option<Reserved>,
    /// Whether it was used since the eviction cursor last passed it.
    pub(crate) touched: bool,
    /// Computed for the first duplicate, since most calls have none.
    fingerprint: Option<[u8; 8]>,
    /// The runs before the one of the record.
    pub(crate) earlier: Vec<Run>,
}

/// Which callers get the result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Every caller with the key.
    Any,
    /// Only the caller that made the call: the key was derived.
    Here,
    /// That caller is gone; the next caller with the same key counts as its retry.
    Gone,
    /// That caller has retried, and the result is ready for it alone.
    Back,
}

/// One run that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) started_at: Millis,
    pub(crate) finished_at: Millis,
    pub(crate) success: bool,
    pub(crate) retriable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<Box<str>>,
}

impl Caller {
    pub(crate) const fn of(local: &LocalClaim<'_>) -> Self {
        if local.cut_off { Self::Here } else { Self::Any }
    }
}

/// The parts of a new record.
#[derive(Debug)]
pub(crate) struct New<'n> {
    pub(crate) key: &'n Key,
    pub(crate) hash: u64,
    pub(crate) ask: Ask,
    pub(crate) caller: Caller,
}

impl<V> Entry<V> {
    #[inline]
    pub(crate) const fn new(new: &New<'_>) -> Self {
        Self {
            key: *new.key,
            hash: new.hash,
            record: Record::new(&new.ask),
            waiters: Vec::new(),
            caller: new.caller,
            reserved: None,
            touched: false,
            fingerprint: None,
            earlier: Vec::new(),
        }
    }

    /// Turns it into the record of another call, and returns the former state.
    #[inline]
    pub(crate) fn renew(&mut self, new: &New<'_>) -> State<V> {
        let before = mem::replace(&mut self.record.state, State::Inflight);
        self.record = Record::new(&new.ask);
        (self.key, self.hash, self.caller) = (*new.key, new.hash, new.caller);
        (self.touched, self.fingerprint, self.reserved) = (false, None, None);
        self.waiters.clear();
        self.earlier.clear();
        before
    }

    /// Whether the call's caller is still there, or has retried: no other caller joins it.
    pub(crate) fn is_attended(&self) -> bool {
        match self.caller {
            Caller::Any => false,
            Caller::Here | Caller::Back => true,
            Caller::Gone => !self.waiters.is_empty(),
        }
    }

    /// Keeps the former run when another one starts.
    pub(crate) fn remember(&mut self, run: Run) {
        if self.earlier.len() == RUNS {
            self.earlier.remove(0);
        }
        self.earlier.push(run);
    }

    /// Whether the record has expired. A call in flight does not expire: its run is alive.
    pub(crate) fn is_over(&self, now: Millis) -> bool {
        !matches!(self.record.state, State::Inflight) && now >= self.record.until
    }

    /// The replay note for a duplicate that comes now.
    #[inline(always)]
    pub(crate) fn replay(&mut self, now: Millis, common: &Common) -> Replay {
        let make = || common.fingerprints.fingerprint(self.key).to_bytes();
        let fingerprint = *self.fingerprint.get_or_insert_with(make);
        match self.record.state {
            State::Inflight => {
                Replay { matched_on: MatchedOn::Inflight, age: Duration::ZERO, fingerprint }
            }
            _ => {
                let age = Duration::from_millis(now.saturating_sub(self.record.changed_at));
                Replay { matched_on: MatchedOn::Completed, age, fingerprint }
            }
        }
    }

    pub(crate) const fn state_name(&self) -> &'static str {
        self.record.state.name()
    }

    /// The failure of the record, if it has one.
    pub(crate) fn cause(&self) -> Option<Arc<RecordedFailure>> {
        recorded(&self.record.state).cloned()
    }
}

impl Run {
    pub(crate) fn of<V>(state: &State<V>, started_at: Millis, finished_at: Millis) -> Option<Self> {
        Self::ended(state, recorded(state).map(|recorded| &**recorded), started_at, finished_at)
    }

    /// The run that led to a state, with its failure.
    pub(crate) fn ended<D, F>(
        state: &protocol::State<D, F>,
        recorded: Option<&RecordedFailure>,
        started_at: Millis,
        finished_at: Millis,
    ) -> Option<Self> {
        let success = match state {
            protocol::State::Inflight => return None,
            protocol::State::Done(_) => true,
            _ => false,
        };
        let retriable = recorded.is_some_and(|recorded| is_retriable(state, recorded));
        let code = recorded.map(|recorded| recorded.code.clone());
        Some(Self { started_at, finished_at, success, retriable, code })
    }
}

/// Whether a repeat after this failure may run, and may succeed.
pub(crate) fn is_retriable<D, F>(
    state: &protocol::State<D, F>,
    recorded: &RecordedFailure,
) -> bool {
    let may_run_again = match state {
        protocol::State::Failed(_, again) => *again != Again::Never,
        protocol::State::Cancelled(_) => true,
        _ => false,
    };
    may_run_again && recorded.verdict.is_transient()
}

pub(crate) const fn recorded<V>(state: &State<V>) -> Option<&Arc<RecordedFailure>> {
    match state {
        State::Failed(failure, _)
        | State::Cancelled(Some(failure))
        | State::Unknown(Some(failure)) => Some(&failure.recorded),
        _ => None,
    }
}
