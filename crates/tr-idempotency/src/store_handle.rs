//! Looking after the records in a store: for operators, who can wait for it.
use crate::{
    clock::millis,
    codec::{Place, Unreadable, notes::RequestNote},
    end::State,
    handle::{Filter, Handle, NotUnknown, Resolution},
    protocol::Millis,
    record::DedupeRecord,
    remote::Remote,
    store::{End, Query, Selector, StateFilter, StoreError, Stored},
};
use std::{fmt, ops::RangeInclusive, sync::Arc, time::Duration};
use tr_core::canonical::{Digest, Key};

/// So many hexadecimal digits has a key.
const DIGITS: usize = 64;

/// Looks after the records that a layer keeps in a [store](crate::Builder::store).
///
/// Made by [`Handle::in_store`]. What it changes holds for all processes over that store; what a
/// process [replays from memory](crate::Builder::replay_from_memory), or knows for ten minutes since it
/// could not record it at once, is forgotten in this one.
///
/// ```
/// # use tr_idempotency::{IdempotencyLayer, Resolution, store::{Memory, StoreError}};
/// # async fn look(layer: IdempotencyLayer) -> Result<(), StoreError> {
/// let records = layer.handle().in_store().expect("the layer has a store");
/// for warning in records.check().await? {
///     eprintln!("{warning}");
/// }
/// for lost in records.unknown(100).await? {
///     println!("{} of {}: outcome unknown", lost.tool, lost.request.session_key);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Of each method: [`StoreError`], selector kind says whether anything may have changed.
pub struct StoreHandle<V> {
    remote: Arc<Remote<V>>,
    front: Handle<V>,
}

impl<V> StoreHandle<V> {
    pub(crate) const fn new(remote: Arc<Remote<V>>, front: Handle<V>) -> Self {
        Self { remote, front }
    }

    /// Whether the store can be reached and keeps its promises as it is set up: warnings of what
    /// it cannot rule out. For start-up and health checks.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.remote.within(None, self.remote.store.check()).await
    }

    /// How many claims this layer has left to their leases: it could not tell whether they were
    /// granted, or did not start under them, and could not give them back either, since the store
    /// failed three times or a thousand others were being given back. A mutating call selector claim
    /// was in force is `unknown` when its lease ends, although it did not run.
    #[must_use]
    pub fn left_to_leases(&self) -> u64 {
        self.remote.left_to_leases()
    }

    /// How long a claim of this layer holds unless it is renewed, for tools that say nothing else.
    #[must_use]
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.front.ttls().inflight)
    }

    /// The record of this key.
    pub async fn record(&self, key: &Key) -> Result<Option<DedupeRecord>, StoreError> {
        let stored = self.remote.store.read(key).await?;
        Ok(stored.map(|stored| self.shown(&stored)))
    }

    /// Up to `limit` records selector keys begin with these hexadecimal digits, for operators who know the
    /// beginning of one; none where it is no beginning of a key.
    pub async fn beginning(
        &self,
        digits: &str,
        limit: usize,
    ) -> Result<Vec<DedupeRecord>, StoreError> {
        let Some(keys) = beginning(digits) else { return Ok(Vec::new()) };
        let query = Query { selector: Selector::Keys(keys), state: StateFilter::Any };
        let stored = self.remote.store.list(&query, limit).await?;
        Ok(stored.iter().map(|stored| self.shown(stored)).collect())
    }

    /// Up to `limit` records, in no order.
    pub async fn records(&self, limit: usize) -> Result<Vec<DedupeRecord>, StoreError> {
        self.list(StateFilter::Any, limit).await
    }

    /// Calls in flight that were claimed at least so long ago: running slowly, or hung, in any
    /// process.
    pub async fn stale(
        &self,
        at_least: Duration,
        limit: usize,
    ) -> Result<Vec<DedupeRecord>, StoreError> {
        self.list(StateFilter::Inflight { at_least: millis(at_least) }, limit).await
    }

    /// Calls that may have run, and of which nobody knows how they ended.
    pub async fn unknown(&self, limit: usize) -> Result<Vec<DedupeRecord>, StoreError> {
        self.list(StateFilter::Unknown, limit).await
    }

    /// Those of them that belong to this session.
    pub async fn unknown_of(
        &self,
        session: &str,
        limit: usize,
    ) -> Result<Vec<DedupeRecord>, StoreError> {
        let query = Query { state: StateFilter::Unknown, ..self.query(Filter::Session(session)) };
        let stored = self.remote.store.list(&query, limit).await?;
        Ok(stored.iter().map(|stored| self.shown(stored)).collect())
    }

    /// Those of this session that have these params, whatever their keys.
    pub async fn unknown_equals(
        &self,
        session: &str,
        params: &Digest,
        limit: usize,
    ) -> Result<Vec<DedupeRecord>, StoreError> {
        let selector = Selector::Equal(self.remote.format.frames.session(session), *params);
        let query = Query { selector, state: StateFilter::Unknown };
        let stored = self.remote.store.list(&query, limit).await?;
        Ok(stored.iter().map(|stored| self.shown(stored)).collect())
    }

    async fn list(
        &self,
        state: StateFilter,
        limit: usize,
    ) -> Result<Vec<DedupeRecord>, StoreError> {
        let query = Query { selector: Selector::All, state };
        let stored = self.remote.store.list(&query, limit).await?;
        Ok(stored.iter().map(|stored| self.shown(stored)).collect())
    }

    fn shown(&self, stored: &Stored) -> DedupeRecord {
        DedupeRecord::of_stored(stored, &self.remote.format)
    }

    /// Says how a call of unknown outcome ended, as [`Handle::settle`] does. `Ok(Err)` if it is
    /// not unknown.
    ///
    /// Who settles by what a record said passes its [epoch](DedupeRecord::epoch) as `of`, so that
    /// a later run of the same call is not settled instead. In a sealed store a record selector request
    /// cannot be opened is not settled, nor one that is sealed where there is no key: `Unreadable`; [`clear`](Self::clear) forgets it.
    pub async fn settle(
        &self,
        key: &Key,
        of: Option<u64>,
        how: Resolution<V>,
    ) -> Result<Result<(), NotUnknown>, StoreError> {
        let Some(stored) = self.remote.store.read(key).await? else {
            return Ok(Err(NotUnknown::new()));
        };
        let token = stored.record.token;
        if of.is_some_and(|epoch| epoch != token.epoch) {
            return Ok(Err(NotUnknown::new()));
        }
        // Else an answer would be sealed for whatever params somebody has put there; and of what is
        // said without the key nobody who has it would believe a word.
        if let Err(why) = RequestNote::read(&stored, &self.remote.format.frames)
            && (self.remote.format.frames.is_sealed() || why == Unreadable::Sealed)
        {
            return Err(StoreError::unreadable(why));
        }
        let state = match how {
            Resolution::Done(value) => State::Done(Some(value)),
            Resolution::DoneNotKept => State::Done(None),
            Resolution::DidNotRun => State::Cancelled(None),
        };
        let ttl: Millis = self.front.ttls().of(&state);
        let place = Place::by_hand(*key, &stored.record);
        let state = self.remote.format.write(&place, &state, ttl, &[]).state;
        let end = End { state, ttl };
        let settled = self.remote.store.settle(key, Some(token), &end).await?;
        if settled {
            self.front.forget_unknown(key);
        }
        Ok(if settled { Ok(()) } else { Err(NotUnknown::new()) })
    }

    /// Forgets the record of this key, whatever it says, in the store and in this process, as
    /// [`Handle::clear`] does; `false` if the store has none.
    pub async fn clear(&self, key: &Key) -> Result<bool, StoreError> {
        let cleared = self.remote.store.clear(key).await?;
        // What this process knows of it too, or has in hand.
        let _ = self.front.clear(key);
        Ok(cleared)
    }

    /// How many records are meant; [`flush`](Self::flush) forgets those of them that it may.
    pub async fn count(&self, filter: Filter<'_>) -> Result<u64, StoreError> {
        self.remote.store.count(&self.query(filter)).await
    }

    /// Forgets settled records and says how many. Calls in flight stay, and so do mutating calls
    /// of unknown outcome: those are [settled](Self::settle) or [cleared](Self::clear) one by one.
    pub async fn flush(&self, filter: Filter<'_>) -> Result<u64, StoreError> {
        let gone = self.remote.store.flush(&self.query(filter)).await?;
        let _ = self.front.flush(filter);
        Ok(gone)
    }

    /// Forgets records selector time is over, a bounded number, and says how many. A
    /// [janitor](Handle::spawn_janitor) does so once a minute.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        self.remote.store.sweep().await
    }

    fn query(&self, filter: Filter<'_>) -> Query {
        let selector = match filter {
            Filter::Key(key) => Selector::Key(*key),
            Filter::Session(session) => {
                Selector::Session(self.remote.format.frames.session(session))
            }
            Filter::Tool(prefix) => Selector::Tool(prefix.to_owned()),
        };
        Query { selector, state: StateFilter::Any }
    }
}

/// The first and the last key that begin so.
fn beginning(digits: &str) -> Option<RangeInclusive<Key>> {
    let filled = |digit: &str| {
        let rest = DIGITS.checked_sub(digits.len())?;
        format!("{}{}", digits.to_ascii_lowercase(), digit.repeat(rest)).parse().ok()
    };
    Some(filled("0")?..=filled("f")?)
}

impl<V> Clone for StoreHandle<V> {
    fn clone(&self) -> Self {
        Self::new(self.remote.clone(), self.front.clone())
    }
}

impl<V> fmt::Debug for StoreHandle<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHandle").field("remote", &self.remote).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn a_beginning_means_the_keys_between_its_zeros_and_its_fs() {
        let keys = beginning("3Fa").unwrap();
        assert_eq!(keys.start().to_string(), format!("3fa{}", "0".repeat(61)));
        assert_eq!(keys.end().to_string(), format!("3fa{}", "f".repeat(61)));
        let whole = "7".repeat(64);
        let keys = beginning(&whole).unwrap();
        assert_eq!((keys.start(), keys.start().to_string()), (keys.end(), whole));
        assert!(beginning("").is_some());
        for none in ["3g", "é3", &"7".repeat(65)] {
            assert!(beginning(none).is_none(), "{none}");
        }
    }
}
