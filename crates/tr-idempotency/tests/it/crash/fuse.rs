//! The points of a call at which a process can die, and a store that has them.
use crate::between::{Between, Way};
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
use tr_idempotency::store::{StoreError, StoreFuture};

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
    BeforeFinalize,
    FinalizeSent,
    FinalizeCommitted,
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
        Self::BeforeFinalize,
        Self::FinalizeSent,
        Self::FinalizeCommitted,
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
pub(crate) type Fused<S> = Between<Arc<Fuse>, S>;

impl Way for Arc<Fuse> {
    fn through<'s, T: Send + 's>(
        &'s self,
        operation: &'static str,
        request: impl Future<Output = Result<T, StoreError>> + Send + 's,
    ) -> StoreFuture<'s, T> {
        let [before, sent, done] = match operation {
            "claim" => [Point::BeforeClaim, Point::ClaimSent, Point::ClaimCommitted],
            "renew" => [Point::BeforeRenew, Point::RenewSent, Point::RenewCommitted],
            "finalize" => [Point::BeforeFinalize, Point::FinalizeSent, Point::FinalizeCommitted],
            _ => return Box::pin(request),
        };
        Box::pin(async move {
            self.reach(before);
            let end = self.sends(sent, request).await;
            self.reach(done);
            end
        })
    }
}
