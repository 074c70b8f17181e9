//! Records in a file that is opened read-only: leases of dead processes cannot be ended in it, and are shown as
//! ended.
use super::{selection::Selection, table::Table};
use crate::store::{Query, StateFilter, Stored};
use tr_sqlite::Result;

/// Up to `limit` of the records that the query selects, as they stand.
pub(super) fn list(
    table: &Table<'_>,
    query: &Query,
    limit: usize,
    is_brief: bool,
) -> Result<Vec<Stored>> {
    let list = |state, limit| {
        let selection = Selection::of(&Query { state, ..query.clone() });
        table.list(&selection, limit, is_brief)
    };
    match query.state {
        StateFilter::Any => list(StateFilter::Any, limit),
        StateFilter::Inflight { .. } => {
            let mut found = list(query.state, usize::MAX)?;
            found.retain(|stored| query.matches(stored));
            found.truncate(limit);
            Ok(found)
        }
        StateFilter::Unknown => {
            let mut found = list(StateFilter::Unknown, limit)?;
            let rest = list(StateFilter::Inflight { at_least: 0 }, usize::MAX)?.into_iter();
            found.extend(rest.filter(|stored| query.matches(stored)));
            found.truncate(limit);
            Ok(found)
        }
    }
}
