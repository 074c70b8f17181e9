//! The protocol, applied to rows within one transaction.
use super::table::Table;
use crate::{
    protocol::{Millis, Token},
    store::{ClaimRequest, Claimed, End},
};
use tr_core::canonical::Key;
use tr_sqlite::{Durability, Result};

/// How far the machine's clock may be behind the file's before there is a warning.
const BEHIND: Millis = 60_000;

pub(super) fn claim(table: &Table<'_>, claim: &ClaimRequest, capacity: u64) -> Result<Claimed> {
    let mut found = table.find(&claim.key)?;
    let is_new = found.is_none();
    let claimed = claim.apply(&mut found, table.head.epoch + 1, table.now);
    let (Claimed::Run(_), Some(stored)) = (&claimed, found) else {
        return Ok(claimed); // Without a write there is no sync.
    };
    if is_new && table.head.records >= capacity && !table.evict()? {
        return Ok(Claimed::Full);
    }
    if !is_new {
        table.clear(&claim.key)?;
    }
    table.insert(&stored)?;
    table.note(table.head.epoch.max(stored.record.token.epoch))?;
    Ok(claimed)
}

pub(super) fn renew(table: &Table<'_>, key: &Key, token: Token, lease: Millis) -> Result<bool> {
    let Some(mut stored) = table.standing(key)? else { return Ok(false) };
    let held = stored.record.renew(token, table.now, lease);
    if held {
        table.update(key, &stored.record)?;
    }
    Ok(held)
}

pub(super) fn release(table: &Table<'_>, key: &Key, owner: u64) -> Result<bool> {
    let is_free = table.standing(key)?.is_some_and(|stored| stored.record.is_released_by(owner));
    if is_free {
        table.clear(key)?;
    }
    Ok(is_free)
}

pub(super) fn finalise(table: &Table<'_>, key: &Key, token: Token, end: End) -> Result<bool> {
    let Some(mut stored) = table.standing(key)? else { return Ok(false) };
    match stored.record.finalise(token, end.state, table.now, end.ttl) {
        Ok(Some(_)) => {
            table.update(key, &stored.record)?;
            // The record's time begins: what has passed until now is over for the next process, too.
            table.note(table.head.epoch)?;
        }
        Ok(None) => {} // Sent again.
        Err(_) => return Ok(false),
    }
    Ok(true)
}

pub(super) fn settle(table: &Table<'_>, key: &Key, of: Option<Token>, end: End) -> Result<bool> {
    let Some(mut stored) = table.standing(key)? else { return Ok(false) };
    let epoch = table.head.epoch + 1;
    let by = Token { epoch, owner: Token::BY_HAND };
    let is_meant = of.is_none_or(|of| of == stored.record.token);
    if !is_meant || stored.record.settle(by, end.state, table.now, end.ttl).is_err() {
        return Ok(false);
    }
    table.update(key, &stored.record)?;
    table.note(epoch)?;
    Ok(true)
}

/// Checks that the file can be written, and returns warnings.
pub(super) fn check(
    table: &Table<'_>,
    capacity: u64,
    durability: Durability,
) -> Result<Vec<String>> {
    table.note(table.head.epoch)?;
    let mut warnings = Vec::new();
    if durability != Durability::Power {
        warnings.push(
            "a power failure may lose the last records, and their calls may run twice: \
             use Durability::Power for mutating tools"
                .into(),
        );
    }
    let (records, behind) = (table.head.records, table.now - table.times.machine);
    if records >= capacity / 10 * 9 {
        warnings.push(format!(
            "{records} of {capacity} records are in use: settle calls of unknown outcome, or raise the capacity"
        ));
    }
    if behind > BEHIND {
        warnings.push(format!(
            "the machine's clock is {} s behind the latest time in the file, so records expire late: correct the clock",
            behind / 1_000
        ));
    }
    Ok(warnings)
}
