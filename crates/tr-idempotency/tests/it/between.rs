//! A store between the layer and another: every operation goes through one function of the test's.
use std::{fmt::Debug, future::Future};
use tr_core::canonical::Key;
use tr_idempotency::store::{
    Change, ClaimRequest, Claimed, Listing, Query, RecordStore, Seen, StoreError, StoreFuture,
    Stored,
};

/// What becomes of requests on their way.
pub(crate) trait Way: Debug + Send + Sync + 'static {
    /// Passes a request of this operation on, when it is polled, or does not.
    fn through<'s, T: Send + 's>(
        &'s self,
        operation: &'static str,
        request: impl Future<Output = Result<T, StoreError>> + Send + 's,
    ) -> StoreFuture<'s, T>;
}

/// A store behind a way to it.
#[derive(Clone, Debug)]
pub(crate) struct Between<W, S> {
    pub(crate) way: W,
    pub(crate) store: S,
}

impl<W: Way, S: RecordStore> RecordStore for Between<W, S> {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        self.way.through("claim", async move { self.store.claim(claim).await })
    }

    fn change<'s>(&'s self, key: &'s Key, change: Change<'s>) -> StoreFuture<'s, bool> {
        let operation = match change {
            Change::Renew(..) => "renew",
            Change::Release(_) => "release",
            Change::Finalize(..) => "finalize",
            Change::Settle(..) => "settle",
        };
        self.way.through(operation, async move { self.store.change(key, change).await })
    }

    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        self.way.through("read", async move { self.store.read(key).await })
    }

    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        self.way.through("watch", async move { self.store.watch(key, seen).await })
    }

    fn list<'s>(
        &'s self,
        query: &'s Query,
        limit: usize,
        is_brief: bool,
    ) -> StoreFuture<'s, Listing> {
        self.way.through("list", async move { self.store.list(query, limit, is_brief).await })
    }

    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        self.way.through("count", async move { self.store.count(query).await })
    }

    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        self.way.through("flush", async move { self.store.flush(query).await })
    }

    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        self.way.through("clear", async move { self.store.clear(key).await })
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.way.through("sweep", async move { self.store.sweep().await })
    }

    fn mark<'s>(&'s self, from: &'s [u8], to: &'s [u8]) -> StoreFuture<'s, Vec<u8>> {
        self.way.through("mark", async move { self.store.mark(from, to).await })
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        self.way.through("check", async move { self.store.check().await })
    }
}
