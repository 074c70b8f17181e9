//! Finds a record by the beginning of its ID.
use super::shown::{Found, SHOWN, noted};
use crate::mcp::records::RecordsCommand;
use anyhow::Context as _;
use tool_reliability::idempotency::{RecordListing, StoreHandle};
use tr_core::ToolOutcome;

/// The records that the command works on.
pub(super) type Records = StoreHandle<ToolOutcome>;

/// How many records with the same beginning are listed.
const MAX_LISTED: usize = 5;

/// The fewest digits of an ID that are looked up.
const MIN_DIGITS: usize = 6;

/// The record whose ID begins with `id`, or why there is not exactly one.
pub(super) async fn find(
    records: &Records,
    id: &str,
    command: &RecordsCommand,
) -> anyhow::Result<Result<Found, String>> {
    let id = id.to_ascii_lowercase();
    if id.len() < MIN_DIGITS {
        return Ok(Err(format!(
            "the ID {id} is too short: give at least {MIN_DIGITS} of its digits"
        )));
    }
    let found = records.beginning(&id, MAX_LISTED + 1).await;
    let RecordListing { mut records, mut unreadable, .. } =
        found.context("the records cannot be read")?;
    Ok(match records.len() + unreadable.len() {
        0 => Err(format!(
            "no record has the ID {id}: {command} list shows all; if the guard keeps them elsewhere, name that place with --records{}",
            noted(&id).map_or_else(String::new, |noted| format!("; it was {noted}"))
        )),
        1 => match records.pop() {
            Some(record) => Ok(Found::Readable(Box::new(record))),
            None => Ok(Found::Unreadable(unreadable.remove(0))),
        },
        several => {
            let keys = records.into_iter().map(|record| record.key);
            let damaged = unreadable.iter().map(|record| record.key.to_string());
            let mut keys: Vec<_> = keys.chain(damaged).collect();
            keys.sort();
            let more = if several > MAX_LISTED { ", …" } else { "" };
            // As many digits of each ID as distinguish it from the others.
            let keys: Vec<_> = keys.iter().map(|key| &**key).collect();
            let named: Vec<_> =
                (0..several.min(MAX_LISTED)).map(|at| shortest_unique(&keys, at)).collect();
            let named = named.join(", ");
            Err(format!(
                "several records have IDs that begin with {id}: {named}{more}: give more digits"
            ))
        }
    })
}

/// The beginning of one of these sorted IDs: [`SHOWN`] digits, or as many as no neighbour shares.
fn shortest_unique<'k>(keys: &[&'k str], at: usize) -> &'k str {
    let key = keys[at];
    let shared = |other: &&str| key.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
    let shared = beside.filter_map(|at| keys.get(at)).map(shared).max();
    let length = shared.map_or(SHOWN, |shared| SHOWN.max(shared + 1));
    key.get(..length).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::shortest_unique;

    #[test]
    fn ids_are_named_as_far_as_they_differ() {
        let keys = ["3fa91c0be27d00aa", "3fa91c0be27d00ab", "3fa91c7777777777"];
        let named: Vec<_> = (0..keys.len()).map(|at| shortest_unique(&keys, at)).collect();
        assert_eq!(named, ["3fa91c0be27d00aa", "3fa91c0be27d00ab", "3fa91c777777"]);
    }
}
