//! Codex's rollbacks: what they take back is not sent.
use super::{
    entry::{Link, What},
    located::Located,
};

/// Takes back the last `turns` of these entries; `false` if they have fewer, and older ones are not among them.
pub(super) fn undo(entries: &mut [Located], turns: u64, has_before: bool) -> bool {
    let begins = |it: &Located| it.entry.link == Link::Root && !it.entry.is_outside();
    let Some(back) = turns.checked_sub(1) else { return true };
    let back = usize::try_from(back).unwrap_or(usize::MAX);
    let starts = entries.iter().enumerate().rev().filter(|(_, it)| begins(it));
    let from = match starts.map(|(at, _)| at).nth(back) {
        Some(from) => from,
        None if has_before => return false,
        None => entries.iter().position(begins).unwrap_or(entries.len()),
    };
    for located in &mut entries[from..] {
        (located.entry.what, located.entry.link) = (What::Outside, Link::Before);
    }
    true
}
