//! A hook that looks up the outcome of a call of unknown outcome.
use crate::{end::State, record::DedupeRecord};
use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout_at},
};
use tr_core::{canonical::Key, internal::lock};

/// What [`Probe::probe`] releases.
pub type ProbeFuture<'p, V> = Pin<Box<dyn Future<Output = Finding<V>> + Send + 'p>>;

/// Looks up how a call of unknown outcome ended: at the payment provider by its
/// [`provider_key`](UnresolvedCall::provider_key), in the mail server's log.
///
/// # When to use
///
/// Wherever a mutating tool's effect can be looked up. It runs when a call finds a record of
/// unknown outcome, in one caller per process while the others wait. That caller's deadline and the
/// [`probe_timeout`](crate::Builder::probe_timeout) bound it; after a timeout the outcome stays
/// unknown. A probe must only read. A probe that panics fails the call that started it, which has
/// not run.
///
/// The run that left the record may still be running: its process was paused, or its lease was
/// lost. A probe may return [`NotRun`](Finding::NotRun) only if that run can have no effect any
/// more; that holds where the provider checks the [epoch](UnresolvedCall::epoch) as a fencing
/// token.
pub trait Probe<V>: fmt::Debug + Send + Sync {
    /// Looks the outcome up.
    fn probe<'p>(&'p self, call: &'p UnresolvedCall) -> ProbeFuture<'p, V>;
}

/// What a probe found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Finding<V> {
    /// It ran, and this is its response: recorded, and replayed to duplicates.
    Done(V),
    /// It did not run, and will not: recorded as cancelled, and the caller runs it.
    NotRun,
    /// The outcome is still unknown: the caller gets `outcome_unknown`.
    StillUnknown,
}

/// A call of unknown outcome.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnresolvedCall {
    /// The hashed key.
    pub key: Key,
    /// The fencing token of the run that was lost.
    pub epoch: u64,
    /// Its record.
    pub record: DedupeRecord,
}

impl<V> Finding<V> {
    /// The state to record; `None` while the outcome is unknown.
    pub(crate) fn state(self) -> Option<State<V>> {
        match self {
            Self::Done(value) => Some(State::Done(Some(value))),
            Self::NotRun => Some(State::Cancelled(None)),
            Self::StillUnknown => None,
        }
    }
}

impl UnresolvedCall {
    /// The idempotency key that a tool sends to its provider.
    #[must_use]
    pub fn provider_key(&self) -> String {
        self.key.to_string()
    }
}

/// A probe, and the calls of this process's records for which it is running.
pub(crate) struct Prober<V> {
    probe: Arc<dyn Probe<V>>,
    patience: Duration,
    in_flight: Mutex<HashMap<Key, Weak<OnceCell<bool>>>>,
}

impl<V> Prober<V> {
    pub(crate) fn new(probe: Arc<dyn Probe<V>>, patience: Duration) -> Arc<Self> {
        Arc::new(Self { probe, patience, in_flight: Mutex::default() })
    }

    /// Runs `ask` in one caller of a key while the others wait; if that caller leaves, the next one
    /// runs it. Returns what it returned; `false` at the deadline.
    pub(crate) async fn once(
        &self,
        key: Key,
        deadline: Option<Instant>,
        ask: impl Future<Output = bool>,
    ) -> bool {
        let cell = self.join(key);
        let asked = cell.get_or_init(|| ask);
        match deadline {
            Some(deadline) => timeout_at(deadline, asked).await.is_ok_and(|known| *known),
            None => *asked.await,
        }
    }

    /// The state of this call, if the probe finds it in time.
    pub(crate) async fn find(
        &self,
        call: &UnresolvedCall,
        deadline: Option<Instant>,
    ) -> Option<State<V>> {
        let patience = Instant::now() + self.patience;
        let until = deadline.map_or(patience, |deadline| deadline.min(patience));
        timeout_at(until, self.probe.probe(call)).await.ok()?.state()
    }

    /// The running probe of a key, or a new one.
    fn join(&self, key: Key) -> Arc<OnceCell<bool>> {
        let mut in_flight = lock(&self.in_flight);
        in_flight.retain(|_, probe| probe.strong_count() > 0);
        let running = in_flight.get(&key).and_then(Weak::upgrade);
        running.filter(|probe| !probe.initialized()).unwrap_or_else(|| {
            let probe = Arc::default();
            in_flight.insert(key, Arc::downgrade(&probe));
            probe
        })
    }
}

tr_core::debug_parts! { Prober<V>, |it| probe = it.probe, patience = it.patience }
