//! The tables, and checks of the server's settings.
use super::fault;
use crate::store::StoreError;
use deadpool_postgres::ClientWrapper;
use tokio_postgres::Error;

/// The schema version that this program creates, and the only one that it reads.
const VERSION: i32 = 1;

/// The advisory lock under which the tables are created: "tr sess" in ASCII.
const LOCK: i64 = 0x7472_2073_6573_7300;

/// Ids are bytes, because PostgreSQL's texts cannot hold NUL. Deleting a session's head deletes its
/// entries.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS tr_session_heads (
    session bytea PRIMARY KEY,
    number bigint NOT NULL,
    stamp bigint NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS tr_session_entries (
    session bytea NOT NULL REFERENCES tr_session_heads ON DELETE CASCADE,
    number bigint NOT NULL,
    stamp bigint NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (session, number)
);
CREATE OR REPLACE VIEW tr_sessions AS
    SELECT encode(session, 'escape') AS session,
        count(*) AS entries,
        sum(octet_length(body)) AS bytes,
        to_timestamp(max(at) / 1000.0) AS last_change
    FROM tr_session_entries GROUP BY session;
CREATE TABLE IF NOT EXISTS tr_session_schema (version integer NOT NULL);
INSERT INTO tr_session_schema SELECT 1 WHERE NOT EXISTS (SELECT FROM tr_session_schema);
";

/// Creates the tables unless they exist.
pub(super) async fn make(client: &mut ClientWrapper) -> Result<(), StoreError> {
    let mut found = version(client).await.map_err(fault::of_statement)?;
    if found.is_none() {
        make_alone(client).await.map_err(fault::of_statement)?;
        found = version(client).await.map_err(fault::of_statement)?;
    }
    match found {
        Some(VERSION) => Ok(()),
        Some(other) => Err(StoreError::refused(format!(
            "the tables of sessions are of version {other}, and this program knows version \
             {VERSION}: use the program that made them, or another schema"
        ))),
        None => Err(StoreError::refused(
            "the tables of sessions were created but cannot be found: check the search_path of the connection",
        )),
    }
}

/// Runs under a lock: the processes that waited find the tables and change nothing.
async fn make_alone(client: &mut ClientWrapper) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    transaction.batch_execute(TABLES).await?;
    transaction.commit().await
}

async fn version(client: &ClientWrapper) -> Result<Option<i32>, Error> {
    let there =
        client.query_one("SELECT to_regclass('tr_session_schema') IS NOT NULL", &[]).await?;
    if !there.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client.query_one("SELECT version FROM tr_session_schema", &[]).await?;
    Ok(Some(row.get(0)))
}

/// Warnings about settings with which the server may lose confirmed changes.
pub(super) async fn check(client: &ClientWrapper) -> Result<Vec<String>, Error> {
    const SETTINGS: &str = "SELECT current_setting('fsync') = 'on',
        current_setting('full_page_writes') = 'on',
        current_setting('synchronous_commit') <> 'off',
        NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'";
    let row = client.query_one(SETTINGS, &[]).await?;
    let warnings = [
        "fsync is off: a crash of the machine may damage all sessions",
        "full_page_writes is off: a crash of the machine may damage all sessions",
        "synchronous_commit is off: a crash of the server forgets what was confirmed last",
        "the server is read-only: it is a replica, or told to be; give the primary's address, or add target_session_attrs=read-write to it",
    ];
    let wrong = warnings.into_iter().enumerate().filter(|(at, _)| !row.get::<_, bool>(*at));
    Ok(wrong.map(|(_, warning)| warning.to_owned()).collect())
}
