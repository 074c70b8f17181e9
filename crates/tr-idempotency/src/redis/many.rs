//! Many records: for operators. Scans all keys with the prefix, unless one key is selected; for a
//! range of keys, only those with the range's common prefix.
use super::{
    fault::store_error,
    layout,
    reply::{parts, unexpected_reply},
    store::Redis,
};
use crate::store::{
    Listing, Query, RecordStore as _, Selector, StoreError, Stored, UnreadableRecord,
};
use redis::Value;
use std::ops::RangeInclusive;
use tr_core::canonical::Key;

/// The common prefix of all keys of a range.
fn beginning(keys: &RangeInclusive<Key>) -> String {
    let (first, last) = (keys.start().to_string(), keys.end().to_string());
    let same = first.chars().zip(last.chars()).take_while(|(a, b)| a == b);
    same.map(|(digit, _)| digit).collect()
}

/// The keys per scan step.
const AT_ONCE: usize = 500;

impl Redis {
    /// Up to `limit` matching records, and up to `limit` of those that cannot be read.
    pub(super) async fn listing(&self, query: &Query, limit: usize) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        let Listing { records, unreadable } = &mut listing;
        self.each(query, |found| {
            match found {
                Ok(stored) if records.len() < limit => records.push(stored),
                Err(record) if unreadable.len() < limit => unreadable.push(record),
                _ => {}
            }
            records.len() < limit
        })
        .await?;
        Ok(listing)
    }

    /// Passes every matching record, and every one that may match and cannot be read, to `each`, until
    /// that returns `false`. A record that changes meanwhile is passed in its old or new state; a record
    /// that stays is passed at least once.
    pub(super) async fn each(
        &self,
        query: &Query,
        mut each: impl FnMut(Result<Stored, UnreadableRecord>) -> bool,
    ) -> Result<(), StoreError> {
        if let Selector::Key(key) = &query.selector {
            if let Some(stored) = self.read(key).await?.filter(|stored| query.matches(stored)) {
                each(Ok(stored));
            }
            return Ok(());
        }
        let pattern = match &query.selector {
            Selector::Keys(keys) => self.pattern(&beginning(keys)),
            _ => self.pattern(""),
        };
        let mut cursor = b"0".to_vec();
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(AT_ONCE);
            let found = self.0.looks.send(scan).await.map_err(store_error)?;
            let (next, names) = match parts(found)? {
                [Value::BulkString(next), Value::Array(names)] => (next, names),
                other => return Err(unexpected_reply(&other)),
            };
            let keys = names.into_iter().filter_map(|name| match name {
                Value::BulkString(name) => self.key_of(&name).map(|key| (key, name)),
                _ => None,
            });
            for found in self.all(keys.collect(), query).await? {
                if !each(found) {
                    return Ok(());
                }
            }
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// The matching records of these keys as they stand, and those that may match and cannot be read.
    async fn all(
        &self,
        keys: Vec<(Key, Vec<u8>)>,
        query: &Query,
    ) -> Result<Vec<Result<Stored, UnreadableRecord>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let (now, _) = self.glimpse(&self.mark_name(), b"0").await?;
        let mut get = redis::cmd("MGET");
        for (_, name) in &keys {
            get.arg(name);
        }
        let values = match self.0.looks.send(get).await.map_err(store_error)? {
            Value::Array(values) => values,
            other => return Err(unexpected_reply(&other)),
        };
        let mut standing = Vec::with_capacity(keys.len());
        for ((key, _), value) in keys.iter().zip(values) {
            if let Value::BulkString(bytes) = value {
                standing.extend(match layout::read(key, &bytes, now) {
                    Ok(stored) => stored.filter(|stored| query.matches(stored)).map(Ok),
                    Err(_) => unreadable(key, &bytes, &query.selector).map(Err),
                });
            }
        }
        Ok(standing)
    }
}

/// A record that cannot be read, unless it shows that it is not selected.
fn unreadable(key: &Key, bytes: &[u8], selector: &Selector) -> Option<UnreadableRecord> {
    let shown = layout::without_state(key, bytes);
    let may_be = |shown: &Stored| selector.matches(shown);
    let is_meant = shown.as_ref().map_or_else(|| selector.may_be_of(key), may_be);
    is_meant.then(|| UnreadableRecord {
        key: *key,
        changed_at: shown.as_ref().map(|shown| shown.record.changed_at),
        tool: shown.map(|shown| shown.tool),
        why: layout::UNREADABLE.to_owned(),
    })
}
