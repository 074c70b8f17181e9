//! Probes calls of unknown outcome whose records are in this process.
use super::{
    Boxed,
    probe::{Finding, Probe, UnresolvedCall},
};
use crate::{end::State, protocol::Ttls, record::RecordState, service::Shared};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout, timeout_at},
};
use tr_core::{canonical::Key, internal::Sharded};

/// A probe, and the calls for which it is running.
pub(crate) struct LocalProbe<V> {
    probe: Arc<dyn Probe<V>>,
    patience: Duration,
    in_flight: Mutex<HashMap<Key, Arc<OnceCell<bool>>>>,
}

impl<V> LocalProbe<V> {
    pub(crate) fn new(probe: Arc<dyn Probe<V>>, patience: Duration) -> Self {
        Self { probe, patience, in_flight: Mutex::default() }
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
    probe: &'i LocalProbe<V>,
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

/// Runs the probe in one caller while the others wait; if that caller leaves, the next one runs it.
/// Returns whether the record has been settled, so that the caller should claim again. `size_of`
/// gives the size of a response that is found.
pub(crate) fn probe_local<V>(
    shared: Sharded<Shared<V>>,
    key: Key,
    ttls: Ttls,
    deadline: Option<Instant>,
    size_of: impl FnOnce(&V) -> usize + Send + 'static,
) -> Boxed<bool>
where
    V: Clone + Send + 'static,
{
    Box::pin(async move {
        let Some(probe) = &shared.probe else { return false };
        let place = probe.join(key);
        let asked = place.cell.get_or_init(|| ask(probe, &shared, key, ttls, size_of));
        match deadline {
            Some(deadline) => timeout_at(deadline, asked).await.is_ok_and(|known| *known),
            None => *asked.await,
        }
    })
}

async fn ask<V>(
    probe: &LocalProbe<V>,
    shared: &Shared<V>,
    key: Key,
    ttls: Ttls,
    size_of: impl FnOnce(&V) -> usize,
) -> bool {
    let Some(record) = shared.store.record(&key) else { return true };
    if record.state != RecordState::Unknown {
        return true;
    }
    let call = UnresolvedCall { key, epoch: record.epoch, record };
    let finding = timeout(probe.patience, probe.probe.probe(&call)).await;
    let state = match finding {
        Ok(Finding::Done(value)) => State::Done(Some(value)),
        Ok(Finding::NotRun) => State::Cancelled(None),
        Ok(Finding::StillUnknown) | Err(_) => return false,
    };
    let size = state.kept().map_or(0, size_of);
    // If another process settled it first, the next claim shows that.
    shared.store.settle(&key, Some(call.epoch), state, size, &ttls);
    true
}

impl<V> fmt::Debug for LocalProbe<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalProbe")
            .field("probe", &self.probe)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
