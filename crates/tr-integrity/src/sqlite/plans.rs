//! Every statement finds its rows by a key and is planned once: long logs and many sessions must
//! not slow down a turn.
use super::{
    Sqlite,
    layout::SESSIONS,
    table::{EMPTY, ENTRIES, HEAD, LIST},
};
use crate::store::{Entry, Revision, SessionStore};
use std::{env, fs, process};
use tr_sqlite::{
    Error,
    rusqlite::{Connection, StatementStatus},
};

#[test]
fn statements_find_their_rows_by_keys() {
    let connection = Connection::open_in_memory().unwrap();
    for step in SESSIONS.steps() {
        connection.execute_batch(step).unwrap();
    }
    for sql in [HEAD, ENTRIES, LIST, EMPTY] {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut rows = plan.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let line: String = row.get(3).unwrap();
            let is_quick = !line.starts_with("SCAN") && !line.contains("TEMP B-TREE");
            assert!(is_quick, "{sql}: {line}");
        }
    }
}

#[tokio::test]
async fn an_append_prepares_nothing_anew() {
    let file = env::temp_dir().join(format!("tr-sessions-plans-{}.db", process::id()));
    drop(fs::remove_file(&file));
    let store = Sqlite::open(&file).await.unwrap();
    let mut head = None;
    for number in 1..=3 {
        let revision = Revision { number, stamp: 0 };
        store.append("s", head, &Entry { revision, at: 0, body: Vec::new() }).await.unwrap();
        head = Some(revision);
    }
    let used = store.database().write(|connection| {
        let head = connection.prepare_cached(HEAD)?;
        let count = |what| head.get_status(what);
        Ok::<_, Error>((count(StatementStatus::Run), count(StatementStatus::RePrepare)))
    });
    assert_eq!(used.await.unwrap(), (3, 0));
    store.close().await;
    fs::remove_file(file).unwrap();
}
