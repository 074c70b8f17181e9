//! A store that says so before it is so, to see that the rounds find it.
use super::harness::{Order, Place};
use std::sync::Mutex;
use tr_integrity::{
    sqlite::Sqlite,
    store::{Entry, Head, Revision, SessionStore, StoreFuture},
};

/// Confirms each entry at once, and writes it along with the next.
#[derive(Debug)]
pub(crate) struct Early {
    store: Sqlite,
    /// Who looks afterwards writes as others do.
    is_early: bool,
    held: Mutex<Option<(String, Option<Revision>, Entry)>>,
}

impl Place for Early {
    type Store = Self;

    async fn open(place: &str) -> Self {
        let store = Sqlite::open(place).await.unwrap();
        Self { store, is_early: Order::given().is_some(), held: Mutex::default() }
    }
}

impl SessionStore for Early {
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        self.store.load(session)
    }

    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()> {
        if !self.is_early {
            return self.store.append(session, after, entry);
        }
        Box::pin(async move {
            let next = (session.to_owned(), after, entry.clone());
            let before = self.held.lock().unwrap().replace(next);
            match before {
                Some((session, after, entry)) => self.store.append(&session, after, &entry).await,
                None => Ok(()),
            }
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
