//! A store between the layer and another, which counts, fails, loses replies and hangs.
use crate::between::{Between, Way};
use std::{
    collections::HashMap,
    fmt,
    future::{Future, pending},
    sync::{Arc, Mutex},
    time::Duration,
};
use tr_idempotency::store::{Memory, StoreError, StoreFuture};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not arrive.
    Unreachable,
    /// It is done, and the reply gets lost.
    ReplyLost,
    /// It is done, and the reply never comes.
    Hangs,
    /// It never arrives, without an error.
    Silent,
    /// The record cannot be read.
    Unreadable,
}

/// Such a store.
pub(crate) type Faulty = Between<Faults, Memory>;

/// Shared by its clones.
#[derive(Clone)]
pub(crate) struct Faults {
    slow: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    calls: HashMap<&'static str, usize>,
    /// For each operation: what becomes of how many more requests.
    faults: HashMap<&'static str, (Fault, usize)>,
}

impl Faulty {
    pub(crate) fn new(store: Memory) -> Self {
        Self { way: Faults { slow: false, state: Arc::default() }, store }
    }

    /// Takes a millisecond there and another back.
    pub(crate) fn slow(store: Memory) -> Self {
        let mut slow = Self::new(store);
        slow.way.slow = true;
        slow
    }

    /// The next `times` requests of this operation end so.
    pub(crate) fn fail(&self, operation: &'static str, fault: Fault, times: usize) {
        self.way.state.lock().unwrap().faults.insert(operation, (fault, times));
    }

    /// Every request to the store ends so, from now on.
    pub(crate) fn down(&self) {
        for operation in ["claim", "renew", "release", "finalize", "settle", "watch"] {
            self.fail(operation, Fault::Unreachable, usize::MAX);
        }
    }

    pub(crate) fn up(&self) {
        self.way.state.lock().unwrap().faults.clear();
    }

    pub(crate) fn calls(&self, operation: &str) -> usize {
        self.way.state.lock().unwrap().calls.get(operation).copied().unwrap_or_default()
    }
}

impl Faults {
    fn next(&self, operation: &'static str) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        *state.calls.entry(operation).or_default() += 1;
        let (fault, left) = state.faults.get_mut(operation)?;
        let fault = (*left > 0).then_some(*fault);
        *left = left.saturating_sub(1);
        fault
    }
}

impl Way for Faults {
    fn through<'s, T: Send + 's>(
        &'s self,
        operation: &'static str,
        request: impl Future<Output = Result<T, StoreError>> + Send + 's,
    ) -> StoreFuture<'s, T> {
        let (fault, way) = (self.next(operation), Duration::from_millis(self.slow.into()));
        let request = async move {
            tokio::time::sleep(way).await;
            let end = request.await;
            tokio::time::sleep(way).await;
            end
        };
        Box::pin(async move {
            match fault {
                None => request.await,
                Some(Fault::Unreachable) => Err(StoreError::unreachable("connection refused")),
                Some(Fault::Unreadable) => Err(StoreError::unreadable("format 9")),
                Some(Fault::ReplyLost) => {
                    request.await?;
                    Err(StoreError::uncertain("connection reset"))
                }
                Some(Fault::Hangs) => {
                    request.await?;
                    pending().await
                }
                Some(Fault::Silent) => pending().await,
            }
        })
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}
