//! Listing, settling and clearing the records in a store: for operators.
mod late;
mod still_runs;

pub use self::{late::LateEnd, still_runs::MayStillRun};

use crate::{
    clock::millis,
    codec::{Found, Place, Unreadable, body::Format},
    end::{Settlement, State},
    handle::{Filter, Handle, NotUnknown, Resolution},
    local::notes::RequestNote,
    protocol::Millis,
    record::{DedupeRecord, StateCount},
    remote::client::Client,
    store::{Change, Query, Selector, StateFilter, StoreError, Stored, UnreadableRecord},
};
use std::{
    borrow::Cow,
    ops::RangeInclusive,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tr_core::{
    canonical::{Digest, Key},
    internal::lock,
};

/// The number of hexadecimal digits of a key.
const DIGITS: usize = 64;

/// Lists, settles and clears the records that a layer keeps in a [store](crate::Builder::store).
///
/// Made by [`Handle::in_store`]. Its changes hold for all processes that share the store. It also
/// deletes what this process [replays from memory](crate::Builder::replay_from_memory), or holds
/// for up to ten minutes because it could not record it at once; in other processes such copies
/// stay.
///
/// ```
/// # use tr_idempotency::{IdempotencyLayer, Resolution, store::{Memory, StoreError}};
/// # async fn look(layer: IdempotencyLayer) -> Result<(), StoreError> {
/// let records = layer.handle().in_store().expect("the layer has a store");
/// for warning in records.check().await? {
///     eprintln!("{warning}");
/// }
/// for lost in records.unknown(100).await?.records {
///     println!("{} of {}: outcome unknown", lost.tool, lost.request.session_key);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Each method returns [`StoreError`]s, whose kind says whether anything may have changed.
pub struct StoreHandle<V> {
    remote: Arc<Client<V>>,
    front: Handle<V>,
}

/// Records, and those that cannot be read: a newer version wrote them, or they are damaged.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecordListing {
    /// The records that match.
    pub records: Vec<DedupeRecord>,
    /// Records that may match: what they say cannot be read. Their calls may have run, so repeats of them
    /// are refused until [`StoreHandle::clear`] deletes the record.
    pub unreadable: Vec<UnreadableRecord>,
}

impl<V> Handle<V> {
    /// The handle of the layer's store; `None` without a store. A store's records are not among
    /// those of this handle, which shows the tables of this process.
    #[must_use]
    pub fn in_store(&self) -> Option<StoreHandle<V>> {
        Some(StoreHandle { remote: self.remote.clone()?, front: self.clone() })
    }
}

impl<V> StoreHandle<V> {
    /// Checks that the store is reachable and configured to keep its promises; returns warnings of
    /// what the check cannot rule out. For start-up and health checks.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.remote.gate.within(None, self.remote.gate.check()).await
    }

    /// Checks that the store's records were written with this layer's key, or without one if it has none. A
    /// new store is marked. Every operation does so, too: this is for start-up.
    ///
    /// # Errors
    /// `Refused` if they were written otherwise.
    pub async fn check_key(&self) -> Result<(), StoreError> {
        // The gate checks its key before any operation.
        self.remote.gate.within(None, self.remote.gate.enter()).await.map(drop)
    }

    /// How many claims this layer could not release, so that only the end of the lease frees them:
    /// three requests to the store failed, or a thousand other claims were being released. A
    /// mutating call under such a claim becomes `unknown` when the lease ends, although it did not
    /// run.
    #[must_use]
    pub fn left_to_leases(&self) -> u64 {
        self.remote.gate.left.load(Relaxed)
    }

    /// Whether the call of this key has ended in this process and the store does not have its end:
    /// not yet, or never, since the store refused it or the claim was lost. After this process's end
    /// such a call is of unknown outcome.
    #[must_use]
    pub fn is_unrecorded(&self, key: &Key) -> bool {
        lock(&self.remote.gate.unrecorded).contains(key)
    }

    /// How long a claim of this layer holds unless it is renewed, for tools that say nothing else.
    #[must_use]
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.front.ttls.inflight)
    }

    /// The record of this key.
    pub async fn record(&self, key: &Key) -> Result<Option<DedupeRecord>, StoreError> {
        let stored = self.remote.gate.read(key).await?;
        Ok(stored.map(|stored| self.remote.shown(&stored)))
    }

    /// Up to `limit` records whose keys begin with these hexadecimal digits; none if `digits` is
    /// not a prefix of a key.
    pub async fn beginning(&self, digits: &str, limit: usize) -> Result<RecordListing, StoreError> {
        let Some(keys) = beginning(digits) else { return Ok(RecordListing::default()) };
        let query = Query { selector: Selector::Keys(keys), state: StateFilter::Any };
        self.listing(&query, limit, false).await
    }

    /// Up to `limit` records that match. If `is_brief`, of calls that are done, the store may leave out
    /// the earlier runs. It reads no answers for it, if it can.
    pub async fn listing(
        &self,
        query: &Query,
        limit: usize,
        is_brief: bool,
    ) -> Result<RecordListing, StoreError> {
        let found = self.remote.gate.list(query, limit, is_brief).await?;
        let records = found.records.iter().map(|stored| self.remote.shown(stored)).collect();
        Ok(RecordListing { records, unreadable: found.unreadable })
    }

    /// Up to `limit` records, in no order.
    pub async fn records(&self, limit: usize) -> Result<RecordListing, StoreError> {
        self.listing(&Query::ALL, limit, false).await
    }

    /// Calls in flight, in any process, that were claimed at least `at_least` ago: slow or hung.
    pub async fn stale(
        &self,
        at_least: Duration,
        limit: usize,
    ) -> Result<RecordListing, StoreError> {
        let state = StateFilter::Inflight { at_least: millis(at_least) };
        self.listing(&Query { selector: Selector::All, state }, limit, true).await
    }

    /// Calls that may have run, with an outcome that was not recorded.
    pub async fn unknown(&self, limit: usize) -> Result<RecordListing, StoreError> {
        let state = StateFilter::Unknown;
        self.listing(&Query { selector: Selector::All, state }, limit, true).await
    }

    /// The calls of this session in that state, whatever their keys, with these params if there are any, without the
    /// answers of those that are done, and the records that cannot be read and may be such calls. On Redis, those of a
    /// layout that this version does not know are left out, since they show neither session nor params.
    pub async fn of_session(
        &self,
        session: &str,
        params: Option<&Digest>,
        state: StateFilter,
        limit: usize,
    ) -> Result<RecordListing, StoreError> {
        let session = self.remote.format.frames.session(session);
        let selector = match params {
            Some(params) => Selector::Equal(session, *params),
            None => Selector::Session(session),
        };
        self.listing(&Query { selector, state }, limit, true).await
    }

    /// Records how a call of unknown outcome ended, as [`Handle::settle`] does, and keeps who did so, and why: in
    /// the [attempt](crate::Attempt::settlement) of the record, also after the call has run again, unless the
    /// process of that run dies in it. `Ok(Err)` if its outcome is not unknown.
    ///
    /// To settle what a record showed, pass its [epoch](DedupeRecord::epoch) as `of`, so that a
    /// later run of the same call is not settled by mistake. A record whose encrypted request notes
    /// cannot be read is not settled (`Unreadable`), neither with the wrong key nor without one;
    /// [`clear`](Self::clear) deletes it.
    pub async fn settle_by(
        &self,
        key: &Key,
        of: Option<u64>,
        how: Resolution<V>,
        by: Option<Settlement>,
    ) -> Result<Result<(), NotUnknown>, StoreError> {
        let stored = self.remote.gate.read(key).await?;
        let is_meant = |stored: &Stored| of.is_none_or(|of| of == stored.record.token.epoch);
        let Some(stored) = stored.filter(is_meant) else { return Ok(Err(NotUnknown(()))) };
        check_notes(&stored, &self.remote.format)?;
        let state = how.into_state();
        let ttls = self.front.ttls;
        let ttl: Millis = match &state {
            // A response that comes late must find it.
            State::Cancelled(_) => ttls.failed.max(ttls.done),
            state => ttls.of(state),
        };
        let place = Place::by_hand(*key, &stored.record);
        let format = &self.remote.format;
        let found = Found::body(key, &stored.record);
        // Who settled an earlier run stays known.
        let (earlier, ..) = format.history(&found).unwrap_or_default();
        let (end, _) = format.write(&place, &state, ttl, &earlier, by.map(Box::new));
        let settle = Change::Settle(Some(stored.record.token), Cow::Owned(end));
        let settled = self.remote.gate.change(key, settle).await?;
        if settled {
            self.front.forget_unknown(key);
        }
        Ok(if settled { Ok(()) } else { Err(NotUnknown(())) })
    }

    /// Deletes the record of this key, whatever its state, in the store and in this process, as
    /// [`Handle::clear`] does; `false` if the store has none.
    pub async fn clear(&self, key: &Key) -> Result<bool, StoreError> {
        let cleared = self.remote.gate.clear(key).await?;
        // Also this process's copy.
        let _ = self.front.clear(key);
        Ok(cleared)
    }

    /// How many records match; [`flush`](Self::flush) deletes the settled ones among them.
    pub async fn count(&self, filter: Filter<'_>) -> Result<u64, StoreError> {
        self.remote.gate.count(&self.query(filter)).await
    }

    /// The number of records of each tool, by scope and state, and their longest time to live: for gauges.
    /// None of a store that cannot count them in one request, as Redis.
    pub async fn state_counts(&self) -> Result<Vec<StateCount>, StoreError> {
        self.remote.gate.state_counts().await
    }

    /// Deletes settled records and returns how many. Calls in flight stay, and so do mutating calls
    /// of unknown outcome: [settle](Self::settle_by) or [clear](Self::clear) those one by one.
    pub async fn flush(&self, filter: Filter<'_>) -> Result<u64, StoreError> {
        let gone = self.remote.gate.flush(&self.query(filter)).await?;
        let _ = self.front.flush(filter);
        Ok(gone)
    }

    /// Deletes a bounded number of expired records and returns how many. A
    /// [janitor](Handle::spawn_janitor) does so once a minute.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        self.remote.gate.sweep().await
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

/// Refuses a record whose request notes cannot be read. Otherwise the response would be sealed for
/// params that another writer of the store may have changed; and readers with the key would refuse
/// what was recorded without it.
fn check_notes<V>(stored: &Stored, format: &Format<V>) -> Result<(), StoreError> {
    match RequestNote::read(stored, &format.frames) {
        Err(why) if format.frames.is_sealed() || why == Unreadable::Sealed => {
            Err(StoreError::unreadable(why))
        }
        _ => Ok(()),
    }
}

/// The range of keys with this prefix.
fn beginning(digits: &str) -> Option<RangeInclusive<Key>> {
    let filled = |digit: &str| {
        let rest = DIGITS.checked_sub(digits.len())?;
        format!("{}{}", digits.to_ascii_lowercase(), digit.repeat(rest)).parse().ok()
    };
    Some(filled("0")?..=filled("f")?)
}

impl<V> Clone for StoreHandle<V> {
    fn clone(&self) -> Self {
        Self { remote: self.remote.clone(), front: self.front.clone() }
    }
}

tr_core::debug_parts! { StoreHandle<V>, |it| remote = it.remote }

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
