//! The way of a layer to its store. A store says under which key its records were written, or that it was
//! none: with another key, nothing gets through. In a sealed store, keys and digests have other names.
use crate::{
    codec::{MarkFault, Names, SealingKey},
    protocol::{Millis, Token},
    store::{
        ClaimRequest, Claimed, End, Listing, Query, RecordStore, Seen, Selector, StoreError,
        StoreFuture, Stored, UnreadableRecord,
    },
};
use std::{
    ops::RangeInclusive,
    sync::{Arc, OnceLock},
};
use tr_core::canonical::Key;

/// The mark of a store whose records are not sealed.
const PLAIN: &[u8] = b"plain";

/// A store behind the check of its key.
#[derive(Debug)]
pub(crate) struct Gate {
    store: Arc<dyn RecordStore>,
    seal: Option<SealingKey>,
    /// Set once the key has been found to be the right one: the names in a sealed store.
    names: OnceLock<Option<Names>>,
}

impl Gate {
    pub(crate) const fn new(store: Arc<dyn RecordStore>, seal: Option<SealingKey>) -> Self {
        Self { store, seal, names: OnceLock::new() }
    }

    /// Checks that the store's records were written with this key, or without one as now; marks a new store.
    async fn enter(&self) -> Result<Option<&Names>, StoreError> {
        if self.names.get().is_none() {
            // Several callers may do so at once, since a slow one must not hold up the others.
            let names = self.check_mark().await?;
            let _ = self.names.set(names);
        }
        Ok(self.names.get().and_then(Option::as_ref))
    }

    async fn check_mark(&self) -> Result<Option<Names>, StoreError> {
        let Some(seal) = &self.seal else {
            let mark = self.store.mark(&[], PLAIN).await?;
            // One that is read only may have no mark yet.
            let is_plain = mark == PLAIN || mark.is_empty();
            return if is_plain { Ok(None) } else { Err(StoreError::refused(MarkFault::Sealed)) };
        };
        let mark = match self.store.mark(&[], &[]).await? {
            none if none.is_empty() => {
                if self.store.count(&Query::ALL).await? > 0 {
                    return Err(StoreError::refused(MarkFault::Unmarked));
                }
                self.store.mark(&[], &seal.mark(&seal.names())).await?
            }
            mark => mark,
        };
        if mark.is_empty() {
            return Ok(Some(seal.names())); // It can only be read, and holds nothing.
        }
        if mark == PLAIN {
            return Err(StoreError::refused(MarkFault::Plain));
        }
        let (names, is_current) = seal.open_mark(&mark).map_err(StoreError::refused)?;
        if !is_current {
            // From now on the new key opens it. If another process was faster, it did the same.
            self.store.mark(&mark, &seal.mark(&names)).await?;
        }
        Ok(Some(names))
    }

    /// The name of this key in the store.
    async fn name(&self, key: &Key) -> Result<Key, StoreError> {
        Ok(self.enter().await?.map_or(*key, |names| names.key(key)))
    }

    /// The query in the store's names, and the range of keys that it asks for: names have another order.
    async fn named(
        &self,
        query: &Query,
    ) -> Result<(Query, Option<RangeInclusive<Key>>), StoreError> {
        let mut query = query.clone();
        let Some(names) = self.enter().await? else { return Ok((query, None)) };
        let mut range = None;
        query.selector = match query.selector {
            Selector::Key(key) => Selector::Key(names.key(&key)),
            Selector::Equal(session, digest) => Selector::Equal(session, names.digest(&digest)),
            Selector::Keys(keys) => {
                range = Some(keys);
                Selector::All
            }
            other => other,
        };
        Ok((query, range))
    }
}

/// A record as the layer knows it.
fn shown(names: Option<&Names>, mut stored: Stored) -> Stored {
    if let Some(names) = names {
        stored.key = names.key_of(&stored.key);
        stored.record.digest = names.digest_of(&stored.record.digest);
    }
    stored
}

impl RecordStore for Gate {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        Box::pin(async move {
            let Some(names) = self.enter().await? else { return self.store.claim(claim).await };
            let (key, digest) = (names.key(&claim.key), names.digest(&claim.digest));
            let claimed = self.store.claim(&ClaimRequest { key, digest, ..claim.clone() }).await?;
            let shown = |stored: Box<Stored>| Box::new(shown(Some(names), *stored));
            Ok(match claimed {
                Claimed::Settled(stored) => Claimed::Settled(shown(stored)),
                Claimed::Unknown(stored) => Claimed::Unknown(shown(stored)),
                other => other,
            })
        })
    }

    fn renew<'s>(&'s self, key: &'s Key, token: Token, lease: Millis) -> StoreFuture<'s, bool> {
        Box::pin(async move { self.store.renew(&self.name(key).await?, token, lease).await })
    }

    fn release<'s>(&'s self, key: &'s Key, owner: u64) -> StoreFuture<'s, bool> {
        Box::pin(async move { self.store.release(&self.name(key).await?, owner).await })
    }

    fn finalise<'s>(&'s self, key: &'s Key, token: Token, end: &'s End) -> StoreFuture<'s, bool> {
        Box::pin(async move { self.store.finalise(&self.name(key).await?, token, end).await })
    }

    fn settle<'s>(
        &'s self,
        key: &'s Key,
        of: Option<Token>,
        end: &'s End,
    ) -> StoreFuture<'s, bool> {
        Box::pin(async move { self.store.settle(&self.name(key).await?, of, end).await })
    }

    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        Box::pin(async move {
            let names = self.enter().await?;
            let name = names.map_or(*key, |names| names.key(key));
            Ok(self.store.read(&name).await?.map(|stored| shown(names, stored)))
        })
    }

    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        Box::pin(async move { self.store.watch(&self.name(key).await?, seen).await })
    }

    fn list<'s>(
        &'s self,
        query: &'s Query,
        limit: usize,
        is_brief: bool,
    ) -> StoreFuture<'s, Listing> {
        Box::pin(async move {
            let (named, range) = self.named(query).await?;
            let names = self.enter().await?;
            let most = if range.is_some() { usize::MAX } else { limit };
            let Listing { records, unreadable } = self.store.list(&named, most, is_brief).await?;
            let is_meant = |key: &Key| range.as_ref().is_none_or(|keys| keys.contains(key));
            let records = records.into_iter().map(|stored| shown(names, stored));
            let unreadable = unreadable.into_iter().map(|record| UnreadableRecord {
                key: names.map_or(record.key, |names| names.key_of(&record.key)),
                ..record
            });
            Ok(Listing {
                records: records.filter(|it| is_meant(&it.key)).take(limit).collect(),
                unreadable: unreadable.filter(|it| is_meant(&it.key)).take(limit).collect(),
            })
        })
    }

    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            match self.named(query).await? {
                (named, None) => self.store.count(&named).await,
                _ => Ok(self.list(query, usize::MAX, true).await?.records.len() as u64),
            }
        })
    }

    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let (named, range) = self.named(query).await?;
            if range.is_none() {
                return self.store.flush(&named).await;
            }
            let mut flushed = 0;
            for found in self.list(query, usize::MAX, true).await?.records {
                let one = Query { selector: Selector::Key(found.key), state: query.state };
                flushed += self.flush(&one).await?;
            }
            Ok(flushed)
        })
    }

    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        Box::pin(async move { self.store.clear(&self.name(key).await?).await })
    }

    /// Also marks a sealed store that has lost its mark, as a server does with all that it has.
    fn sweep(&self) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            if let (Some(names), Some(seal)) = (self.enter().await?, &self.seal) {
                self.store.mark(&[], &seal.mark(names)).await?;
            }
            self.store.sweep().await
        })
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move {
            self.enter().await?;
            self.store.check().await
        })
    }

    fn mark<'s>(&'s self, from: &'s [u8], to: &'s [u8]) -> StoreFuture<'s, Vec<u8>> {
        Box::pin(async move {
            self.enter().await?;
            self.store.mark(from, to).await
        })
    }

    fn is_owner_alive<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<bool>> {
        Box::pin(async move { self.store.is_owner_alive(&self.name(key).await?).await })
    }
}
