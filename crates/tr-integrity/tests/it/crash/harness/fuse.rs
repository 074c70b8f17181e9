//! The points of a turn at which a process can die, and a store that has them.
use std::{
    future::poll_fn,
    hint,
    pin::pin,
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::Instant;
use tr_integrity::store::{Entry, Head, Revision, SessionStore, StoreFuture};

/// What is about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Message,
    Checkpoint,
    Intent,
    Record,
    Commit,
    Rollback,
    Compaction,
}

/// How far a write is. What is `Sent` is on its way: whether it gets there is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Before,
    Sent,
    Stored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    ToolStarted,
    ToolEnded,
    Of(Write, Way),
}

impl Point {
    pub(crate) fn all() -> Vec<Self> {
        use Way::{Before, Sent, Stored};
        use Write::{Checkpoint, Commit, Compaction, Intent, Message, Record, Rollback};
        let writes = [Message, Checkpoint, Intent, Record, Commit, Rollback, Compaction];
        let ways = |write| [Before, Sent, Stored].map(|way| Self::Of(write, way));
        let tool = [Self::ToolStarted, Self::ToolEnded];
        writes.into_iter().flat_map(ways).chain(tool).collect()
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|point| format!("{point:?}") == name)
    }
}

/// Ends the process at one point; without one it tells of each.
#[derive(Debug)]
pub(crate) struct Fuse {
    point: Option<Point>,
    /// How often it comes by before it ends there.
    left: AtomicU32,
    /// How long it lives on after it has sent something.
    lasts: Duration,
    next: Mutex<Write>,
}

impl Fuse {
    pub(crate) fn new(point: Option<Point>, nth: u32, lasts: Duration) -> Arc<Self> {
        let (left, next) = (AtomicU32::new(nth), Mutex::new(Write::Message));
        Arc::new(Self { point, left, lasts, next })
    }

    /// Says what is written next.
    pub(crate) fn writes(&self, write: Write) {
        *self.next.lock().unwrap() = write;
    }

    pub(crate) fn reach(&self, point: Point) {
        match self.point {
            None => println!("\nat {point:?}"),
            Some(end) if end == point && self.left.fetch_sub(1, Relaxed) == 1 => process::abort(),
            Some(_) => {}
        }
    }

    async fn passes<F: Future>(&self, request: F) -> F::Output {
        let write = *self.next.lock().unwrap();
        let sent = Point::Of(write, Way::Sent);
        self.reach(Point::Of(write, Way::Before));
        let mut request = pin!(request);
        let mut is_sent = false;
        let end = poll_fn(|cx| {
            let poll = request.as_mut().poll(cx);
            if !is_sent {
                is_sent = true;
                if self.point == Some(sent) {
                    let since = Instant::now();
                    while since.elapsed() < self.lasts {
                        hint::spin_loop();
                    }
                }
                self.reach(sent);
            }
            poll
        })
        .await;
        self.reach(Point::Of(write, Way::Stored));
        end
    }
}

/// A store on whose ways the process can die.
#[derive(Debug)]
pub(crate) struct Fused<S> {
    pub(crate) store: S,
    pub(crate) fuse: Arc<Fuse>,
}

impl<S: SessionStore> SessionStore for Fused<S> {
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        self.store.load(session)
    }

    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()> {
        // Made late: what is sent by the call itself is sent after `Before`.
        Box::pin(async move {
            self.fuse.passes(async { self.store.append(session, after, entry).await }).await
        })
    }

    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            self.fuse.passes(async { self.store.compact(session, base).await }).await
        })
    }

    fn list<'s>(&'s self, after: Option<&'s str>, limit: usize) -> StoreFuture<'s, Vec<Head>> {
        self.store.list(after, limit)
    }

    fn delete<'s>(&'s self, session: &'s str) -> StoreFuture<'s, bool> {
        self.store.delete(session)
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        self.store.check()
    }
}
