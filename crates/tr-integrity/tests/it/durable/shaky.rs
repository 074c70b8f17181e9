//! A store that fails when it is told to, and takes its time.
use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
};
use tr_integrity::store::{
    Entry, Head, Memory, Revision, SessionStore, StoreError, StoreErrorKind, StoreFuture,
};

/// Lets others go first. Keeps no waker.
pub(crate) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What becomes of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    /// It never reached the store.
    Lost,
    /// It is kept, and the reply got lost.
    Unanswered,
    Refused,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Shaky {
    pub(crate) store: Memory,
    fates: Arc<Mutex<VecDeque<Fate>>>,
    appends: Arc<AtomicUsize>,
    is_away: Arc<Mutex<bool>>,
}

impl Shaky {
    /// What becomes of the next appends; all after them are kept.
    pub(crate) fn next(&self, fates: &[Fate]) {
        *self.fates.lock().unwrap() = fates.iter().copied().collect();
    }

    /// Whether loading fails.
    pub(crate) fn is_away(&self, is_away: bool) {
        *self.is_away.lock().unwrap() = is_away;
    }

    pub(crate) fn appends(&self) -> usize {
        self.appends.load(SeqCst)
    }
}

impl SessionStore for Shaky {
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        Box::pin(async move {
            yield_now().await;
            if *self.is_away.lock().unwrap() {
                return Err(StoreError::unreachable("away"));
            }
            let loaded = self.store.load(session).await;
            yield_now().await;
            loaded
        })
    }

    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            self.appends.fetch_add(1, SeqCst);
            yield_now().await;
            let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Kept);
            let fail = |kind| Err(StoreError::new(kind, "as told"));
            match fate {
                Fate::Lost => return fail(StoreErrorKind::Unreachable),
                Fate::Refused => return fail(StoreErrorKind::Refused),
                Fate::Kept | Fate::Unanswered => {}
            }
            let end = self.store.append(session, after, entry).await;
            yield_now().await;
            if fate == Fate::Unanswered { fail(StoreErrorKind::Uncertain) } else { end }
        })
    }

    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()> {
        self.store.compact(session, base)
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
