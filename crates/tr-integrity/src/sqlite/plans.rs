//! Every statement finds its rows by a key: long logs and many sessions must not slow a turn.
use super::{
    layout::SESSIONS,
    table::{EMPTY, ENTRIES, HEAD, LIST, LIST_ALL},
};
use tr_sqlite::rusqlite::Connection;

#[test]
fn statements_find_their_rows_by_keys() {
    let connection = Connection::open_in_memory().unwrap();
    for step in SESSIONS.steps() {
        connection.execute_batch(step).unwrap();
    }
    for sql in [HEAD, ENTRIES, LIST, LIST_ALL, EMPTY] {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut rows = plan.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let line: String = row.get(3).unwrap();
            let is_quick = !line.starts_with("SCAN") && !line.contains("TEMP B-TREE");
            assert!(is_quick, "{sql}: {line}");
        }
    }
}
