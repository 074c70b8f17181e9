//! A store in memory: a reference implementation, and a stand-in for a shared store in tests.
use super::{Entry, Head, Revision, SessionStore, StoreError, StoreFuture};
use std::{
    collections::BTreeMap,
    future::ready,
    ops::Bound,
    sync::{Arc, Mutex},
};
use tr_core::internal::lock;

/// Sessions in memory, behind the trait that durable stores implement.
///
/// In tests, where each [`Sessions`](crate::Sessions) over a clone of one `Memory` stands for a
/// process; and as an example for implementing a store. To keep sessions in one process only, use
/// no store: that is faster. A clone shares the sessions.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Logs>>);

type Logs = BTreeMap<String, Vec<Entry>>;

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

fn head(log: &[Entry]) -> Option<Revision> {
    log.last().map(|last| last.revision)
}

impl SessionStore for Memory {
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        let log = lock(&self.0).get(session).cloned();
        Box::pin(ready(Ok(log.unwrap_or_default())))
    }

    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()> {
        let append = || {
            let mut logs = lock(&self.0);
            let log = logs.get(session).map_or(&[][..], Vec::as_slice);
            let number = entry.revision.number;
            let mut since = log.iter().rev().take_while(|there| there.revision.number >= number);
            if since.any(|there| there.revision == entry.revision) {
                return Ok(()); // Sent again.
            }
            let head = head(log);
            if head != after {
                return Err(StoreError::conflict(head));
            }
            logs.entry(session.into()).or_default().push(entry.clone());
            Ok(())
        };
        Box::pin(ready(append()))
    }

    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()> {
        let compact = || {
            let mut logs = lock(&self.0);
            match logs.get_mut(session) {
                Some(log) if head(log) == Some(base.revision) => *log = vec![base.clone()],
                log => return Err(StoreError::conflict(log.and_then(|log| head(log)))),
            }
            Ok(())
        };
        Box::pin(ready(compact()))
    }

    fn list<'s>(&'s self, after: Option<&'s str>, limit: usize) -> StoreFuture<'s, Vec<Head>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let logs = lock(&self.0);
        let heads = logs.range::<str, _>((from, Bound::Unbounded)).filter_map(|(session, log)| {
            let Entry { revision, at, .. } = *log.last()?;
            Some(Head { session: session.clone(), revision, at })
        });
        Box::pin(ready(Ok(heads.take(limit).collect())))
    }

    fn delete<'s>(&'s self, session: &'s str) -> StoreFuture<'s, bool> {
        let was_there = lock(&self.0).remove(session).is_some();
        Box::pin(ready(Ok(was_there)))
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(ready(Ok(Vec::new())))
    }
}
