//! Probes calls of unknown outcome.
use super::probe::{Probe, UnresolvedCall};
use crate::end::State;
use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout_at},
};
use tr_core::canonical::Key;

/// A probe, and the calls of this process's records for which it is running.
pub(crate) struct Prober<V> {
    probe: Arc<dyn Probe<V>>,
    patience: Duration,
    in_flight: Mutex<HashMap<Key, Arc<OnceCell<bool>>>>,
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
        let place = self.join(key);
        let asked = place.cell.get_or_init(|| ask);
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<OnceCell<bool>>>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, key: Key) -> Place<'_, V> {
        let cell = self.lock().entry(key).or_default().clone();
        Place { probe: self, key, cell }
    }
}

/// One caller's share in a running probe.
struct Place<'i, V> {
    probe: &'i Prober<V>,
    key: Key,
    cell: Arc<OnceCell<bool>>,
}

impl<V> Drop for Place<'_, V> {
    fn drop(&mut self) {
        let mut in_flight = self.probe.lock();
        let is_ours = in_flight.get(&self.key).is_some_and(|it| Arc::ptr_eq(it, &self.cell));
        // The probe has ended, or this was its last caller: the next caller starts a new one.
        if is_ours && (self.cell.initialized() || Arc::strong_count(&self.cell) == 2) {
            in_flight.remove(&self.key);
        }
    }
}

tr_core::debug_parts! { Prober<V>, |it| probe = it.probe, patience = it.patience }
