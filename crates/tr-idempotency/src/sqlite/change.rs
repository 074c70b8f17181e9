//! The protocol, applied to rows within one transaction.
use super::table::Table;
use crate::{
    protocol::{Millis, State},
    store::{Change, Changed, ClaimRequest, Claimed},
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

pub(super) fn change(table: &Table<'_>, key: &Key, change: Change<'_>) -> Result<bool> {
    let Some(mut stored) = table.standing(key)? else { return Ok(false) };
    let record = &mut stored.record;
    match change.apply(record, table.head.epoch + 1, table.now) {
        Changed::Not(is_done) => return Ok(is_done),
        Changed::Deleted => return table.clear(key).map(|_| true),
        Changed::Written => table.update(key, record)?,
    }
    if !matches!(record.state, State::Inflight) {
        // The record's time begins: what has passed until now is over for the next process, too.
        table.note(table.head.epoch.max(record.token.epoch))?;
    }
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
