//! A store between the layer and another, which counts, fails, loses replies and hangs.
use std::{
    collections::HashMap,
    fmt,
    future::{Future, pending},
    sync::{Arc, Mutex},
    time::Duration,
};
use tr_core::canonical::Key;
use tr_idempotency::{
    protocol::{Millis, Token},
    store::{
        ClaimRequest, Claimed, End, Memory, Query, RecordStore, Seen, StoreError, StoreFuture,
        Stored,
    },
};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not arrive.
    Unreachable,
    /// It is done, and the reply gets lost.
    ReplyLost,
    /// It is done, and the reply never comes.
    Hangs,
    /// It never arrives, and nobody says so.
    Silent,
    /// The record cannot be read.
    Unreadable,
}

#[derive(Clone)]
pub(crate) struct Faulty {
    inner: Memory,
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
    pub(crate) fn new(inner: Memory) -> Self {
        Self { inner, slow: false, state: Arc::default() }
    }

    /// Takes a millisecond there and another back.
    pub(crate) fn slow(inner: Memory) -> Self {
        Self { slow: true, ..Self::new(inner) }
    }

    /// The next `times` requests of this operation end so.
    pub(crate) fn fail(&self, operation: &'static str, fault: Fault, times: usize) {
        self.state.lock().unwrap().faults.insert(operation, (fault, times));
    }

    /// Every request to the store ends so, from now on.
    pub(crate) fn down(&self) {
        for operation in ["claim", "renew", "release", "finalise", "settle", "watch"] {
            self.fail(operation, Fault::Unreachable, usize::MAX);
        }
    }

    pub(crate) fn up(&self) {
        self.state.lock().unwrap().faults.clear();
    }

    pub(crate) fn calls(&self, operation: &str) -> usize {
        self.state.lock().unwrap().calls.get(operation).copied().unwrap_or_default()
    }

    fn next(&self, operation: &'static str) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        *state.calls.entry(operation).or_default() += 1;
        let (fault, left) = state.faults.get_mut(operation)?;
        let fault = (*left > 0).then_some(*fault);
        *left = left.saturating_sub(1);
        fault
    }

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

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl RecordStore for Faulty {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        self.through("claim", async move { self.inner.claim(claim).await })
    }
    fn renew<'s>(&'s self, key: &'s Key, token: Token, lease: Millis) -> StoreFuture<'s, bool> {
        self.through("renew", async move { self.inner.renew(key, token, lease).await })
    }
    fn release<'s>(&'s self, key: &'s Key, owner: u64) -> StoreFuture<'s, bool> {
        self.through("release", async move { self.inner.release(key, owner).await })
    }
    fn finalise<'s>(&'s self, key: &'s Key, token: Token, end: &'s End) -> StoreFuture<'s, bool> {
        self.through("finalise", async move { self.inner.finalise(key, token, end).await })
    }
    fn settle<'s>(
        &'s self,
        key: &'s Key,
        of: Option<Token>,
        end: &'s End,
    ) -> StoreFuture<'s, bool> {
        self.through("settle", async move { self.inner.settle(key, of, end).await })
    }
    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        self.through("read", async move { self.inner.read(key).await })
    }
    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        self.through("watch", async move { self.inner.watch(key, seen).await })
    }
    fn list<'s>(&'s self, query: &'s Query, limit: usize) -> StoreFuture<'s, Vec<Stored>> {
        self.inner.list(query, limit)
    }
    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        self.inner.count(query)
    }
    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        self.inner.flush(query)
    }
    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        self.inner.clear(key)
    }
    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.inner.sweep()
    }
    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        self.inner.check()
    }
}
