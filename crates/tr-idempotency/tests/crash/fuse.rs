//! The points of a call at which a process can die, and a store that has them.
use std::{
    future::{Future, poll_fn},
    hint,
    pin::pin,
    process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::Instant;
use tr_core::canonical::Key;
use tr_idempotency::{
    protocol::{Millis, Token},
    store::{ClaimRequest, Claimed, End, Query, RecordStore, Seen, StoreFuture, Stored},
};

/// In the order in which a call comes by. What is `Sent` is on its way to the disk: whether it
/// gets there is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    BeforeClaim,
    ClaimSent,
    ClaimCommitted,
    ToolEntered,
    EffectDone,
    BeforeRenew,
    RenewSent,
    RenewCommitted,
    BeforeFinalise,
    FinaliseSent,
    FinaliseCommitted,
}

impl Point {
    pub(crate) const ALL: [Self; 11] = [
        Self::BeforeClaim,
        Self::ClaimSent,
        Self::ClaimCommitted,
        Self::ToolEntered,
        Self::EffectDone,
        Self::BeforeRenew,
        Self::RenewSent,
        Self::RenewCommitted,
        Self::BeforeFinalise,
        Self::FinaliseSent,
        Self::FinaliseCommitted,
    ];

    /// The point of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| format!("{point:?}") == name)
    }

    /// A call comes by here only if its tool takes longer than the lease.
    pub(crate) fn is_of_renewal(self) -> bool {
        matches!(self, Self::BeforeRenew | Self::RenewSent | Self::RenewCommitted)
    }
}

/// Ends the process at one point.
#[derive(Debug)]
pub(crate) struct Fuse {
    /// `None` to end nowhere, and say where it comes by.
    point: Option<Point>,
    /// How often it comes by before it ends there.
    left: AtomicU32,
    /// How long it lives on after it has sent something.
    lasts: Duration,
}

impl Fuse {
    pub(crate) fn new(point: Option<Point>, nth: u32, lasts: Duration) -> Arc<Self> {
        Arc::new(Self { point, left: AtomicU32::new(nth), lasts })
    }

    pub(crate) fn reach(&self, point: Point) {
        match self.point {
            None => println!("\nat {point:?}"),
            Some(end) if end == point && self.left.fetch_sub(1, Relaxed) == 1 => process::abort(),
            Some(_) => {}
        }
    }

    /// Comes by `point` as soon as the request is on its way.
    async fn sends<F: Future>(&self, point: Point, request: F) -> F::Output {
        let mut request = pin!(request);
        let mut is_sent = false;
        poll_fn(|cx| {
            let poll = request.as_mut().poll(cx);
            if !is_sent {
                is_sent = true;
                if self.point == Some(point) {
                    let sent = Instant::now();
                    while sent.elapsed() < self.lasts {
                        hint::spin_loop();
                    }
                }
                self.reach(point);
            }
            poll
        })
        .await
    }
}

/// A store on whose ways the process can die.
#[derive(Debug)]
pub(crate) struct Fused<S> {
    pub(crate) store: S,
    pub(crate) fuse: Arc<Fuse>,
}

impl<S: RecordStore> RecordStore for Fused<S> {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        Box::pin(async move {
            self.fuse.reach(Point::BeforeClaim);
            let claimed = self.fuse.sends(Point::ClaimSent, self.store.claim(claim)).await;
            self.fuse.reach(Point::ClaimCommitted);
            claimed
        })
    }

    fn renew<'s>(&'s self, key: &'s Key, token: Token, lease: Millis) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            self.fuse.reach(Point::BeforeRenew);
            let renew = self.store.renew(key, token, lease);
            let renewed = self.fuse.sends(Point::RenewSent, renew).await;
            self.fuse.reach(Point::RenewCommitted);
            renewed
        })
    }

    fn finalise<'s>(&'s self, key: &'s Key, token: Token, end: &'s End) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            self.fuse.reach(Point::BeforeFinalise);
            let finalise = self.store.finalise(key, token, end);
            let finalised = self.fuse.sends(Point::FinaliseSent, finalise).await;
            self.fuse.reach(Point::FinaliseCommitted);
            finalised
        })
    }

    fn release<'s>(&'s self, key: &'s Key, owner: u64) -> StoreFuture<'s, bool> {
        self.store.release(key, owner)
    }

    fn settle<'s>(
        &'s self,
        key: &'s Key,
        of: Option<Token>,
        end: &'s End,
    ) -> StoreFuture<'s, bool> {
        self.store.settle(key, of, end)
    }

    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        self.store.read(key)
    }

    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        self.store.watch(key, seen)
    }

    fn list<'s>(&'s self, query: &'s Query, limit: usize) -> StoreFuture<'s, Vec<Stored>> {
        self.store.list(query, limit)
    }

    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        self.store.count(query)
    }

    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        self.store.flush(query)
    }

    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        self.store.clear(key)
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.store.sweep()
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        self.store.check()
    }
}
