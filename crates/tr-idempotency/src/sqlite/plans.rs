//! Every statement uses an index, so that a million records do not slow down a claim.
use super::{
    layout::CALLS,
    selection::Selection,
    table::{dead_leases, evictions},
};
use crate::store::{Query, Selector, StateFilter};
use tr_core::canonical::{Digest, Key};
use tr_sqlite::rusqlite::Connection;

fn calls() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    for step in CALLS.steps() {
        connection.execute_batch(step).unwrap();
    }
    connection
}

/// SQLite's query plan for this statement, one line for each table.
fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = plan.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        lines.push(row.get(3).unwrap());
    }
    lines
}

fn count(selector: Selector, state: StateFilter) -> String {
    let selection = Selection::of(&Query { selector, state });
    format!("SELECT count(*) FROM calls WHERE {}", selection.sql)
}

#[test]
fn a_claim_reads_one_row() {
    let plan = plan(&calls(), "SELECT * FROM calls WHERE key = ?1");
    assert_eq!(plan, ["SEARCH calls USING INDEX sqlite_autoindex_calls_1 (key=?)"]);
}

#[test]
fn the_leases_of_the_dead_are_among_the_open_calls() {
    let connection = calls();
    for statement in dead_leases() {
        let plan = plan(&connection, &statement);
        assert!(plan[0].contains("calls_open"), "{statement}: {plan:?}");
    }
}

#[test]
fn room_is_made_without_a_search() {
    let connection = calls();
    for (evict, index) in evictions().iter().zip(["calls_by_end", "calls_by_end", "calls_open"]) {
        let plan = plan(&connection, evict);
        assert!(plan.iter().any(|line| line.contains(index)), "{evict}: {plan:?}");
        assert!(!plan.iter().any(|line| line.starts_with("SCAN calls")), "{evict}: {plan:?}");
        assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{evict}: {plan:?}");
    }
}

#[test]
fn operators_questions_have_an_index() {
    let connection = calls();
    let session = || Selector::Session("s".into());
    let key = |byte| Key::from_bytes([byte; 32]);
    for (selector, state, index) in [
        (Selector::Key(key(7)), StateFilter::Any, "sqlite_autoindex_calls_1"),
        (Selector::Keys(key(7)..=key(8)), StateFilter::Any, "sqlite_autoindex_calls_1"),
        (session(), StateFilter::Any, "calls_by_session"),
        (
            Selector::Equal("s".into(), Digest::of_bytes("p")),
            StateFilter::Unknown,
            "calls_by_session",
        ),
        (Selector::Tool("pay.".into()), StateFilter::Any, "calls_by_tool"),
        (Selector::All, StateFilter::Unknown, "calls_open"),
        (Selector::All, StateFilter::Inflight { at_least: 1 }, "calls_open"),
    ] {
        let plan = plan(&connection, &count(selector, state));
        assert!(plan[0].starts_with("SEARCH"), "{state:?}: {plan:?}");
        assert!(plan[0].contains(index), "{state:?}: {plan:?}");
    }
}

/// As a guard looks for them at each call that may change something.
#[test]
fn a_session_of_many_ended_calls_does_not_slow_down_its_next_call() {
    for (selector, state, expected) in [
        (
            Selector::Equal("s".into(), Digest::of_bytes("p")),
            StateFilter::Any,
            "SEARCH calls USING INDEX calls_by_session (session=? AND digest=?)",
        ),
        (
            Selector::Session("s".into()),
            StateFilter::Unknown,
            "SEARCH calls USING INDEX calls_unended (session=?)",
        ),
    ] {
        let selection = Selection::of_any(&Query { selector, state });
        let plan = plan(&calls(), &format!("SELECT * FROM calls WHERE {}", selection.sql));
        assert_eq!(plan, [expected]);
    }
}
