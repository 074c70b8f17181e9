//! The SQL statements: each is atomic and takes one round trip.
use crate::store::{Entry, Revision};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::{Error, Row, types::ToSql};

const LOAD: &str =
    "SELECT number, stamp, at, body FROM tr_session_entries WHERE session = $1 ORDER BY number";

const BEGIN: &str = "WITH head AS (
    INSERT INTO tr_session_heads VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING session
) INSERT INTO tr_session_entries SELECT session, $2, $3, $4, $5 FROM head";

/// Writers of one session queue at its head's row.
const APPEND: &str = "WITH head AS (
    UPDATE tr_session_heads SET number = $2, stamp = $3, at = $4
    WHERE session = $1 AND number = $6 AND stamp = $7 RETURNING session
) INSERT INTO tr_session_entries SELECT session, $2, $3, $4, $5 FROM head";

/// After a change without effect: the head, and whether the entry exists.
const LOOK: &str = "SELECT number, stamp, EXISTS (
    SELECT FROM tr_session_entries WHERE session = $1 AND number = $2 AND stamp = $3
) FROM tr_session_heads WHERE session = $1";

/// The lock on the head's row excludes other writers, so the older entries cannot change.
const COMPACT: &str = "WITH head AS (
    UPDATE tr_session_heads SET at = $4
    WHERE session = $1 AND number = $2 AND stamp = $3 RETURNING session
), older AS (
    DELETE FROM tr_session_entries WHERE session IN (SELECT session FROM head) AND number < $2
) UPDATE tr_session_entries SET at = $4, body = $5
    WHERE session IN (SELECT session FROM head) AND number = $2";

const LIST: &str = "SELECT session, number, stamp, at FROM tr_session_heads
    WHERE $1::bytea IS NULL OR session > $1 ORDER BY session LIMIT $2";

const DELETE: &str = "DELETE FROM tr_session_heads WHERE session = $1";

pub(super) async fn load(client: &ClientWrapper, session: &str) -> Result<Vec<Entry>, Error> {
    let statement = client.prepare_cached(LOAD).await?;
    let rows = client.query(&statement, &[&session.as_bytes()]).await?;
    let entry =
        |row: &Row| Entry { revision: revision(row, 0), at: unsigned(row, 2), body: row.get(3) };
    Ok(rows.iter().map(entry).collect())
}

/// Returns whether the entry is stored; if not, the head.
pub(super) async fn append(
    client: &ClientWrapper,
    session: &str,
    after: Option<Revision>,
    entry: &Entry,
) -> Result<Result<(), Option<Revision>>, Error> {
    let id = session.as_bytes();
    let ((number, stamp), at) = (columns(entry.revision), entry.at.cast_signed());
    let after = after.map(columns);
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&id, &number, &stamp, &at, &entry.body];
    if let Some((number, stamp)) = &after {
        values.extend([number as &(dyn ToSql + Sync), stamp]);
    }
    let statement = client.prepare_cached(if after.is_none() { BEGIN } else { APPEND }).await?;
    if client.execute(&statement, &values).await? == 1 {
        return Ok(Ok(()));
    }
    let (head, is_there) = look(client, session, entry.revision).await?;
    Ok(if is_there { Ok(()) } else { Err(head) })
}

/// Returns whether the entry is the session's base; if not, the head.
pub(super) async fn compact(
    client: &ClientWrapper,
    session: &str,
    base: &Entry,
) -> Result<Result<(), Option<Revision>>, Error> {
    let (id, (number, stamp)) = (session.as_bytes(), columns(base.revision));
    let statement = client.prepare_cached(COMPACT).await?;
    let values: [&(dyn ToSql + Sync); 5] =
        [&id, &number, &stamp, &base.at.cast_signed(), &base.body];
    if client.execute(&statement, &values).await? == 1 {
        return Ok(Ok(()));
    }
    Ok(Err(look(client, session, base.revision).await?.0))
}

pub(super) async fn list(
    client: &ClientWrapper,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Revision, u64)>, Error> {
    let statement = client.prepare_cached(LIST).await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = client.query(&statement, &[&after.map(str::as_bytes), &limit]).await?;
    Ok(rows.iter().map(|row| (row.get(0), revision(row, 1), unsigned(row, 3))).collect())
}

pub(super) async fn delete(client: &ClientWrapper, session: &str) -> Result<bool, Error> {
    let statement = client.prepare_cached(DELETE).await?;
    Ok(client.execute(&statement, &[&session.as_bytes()]).await? > 0)
}

/// The session's head, and whether the session has this entry.
async fn look(
    client: &ClientWrapper,
    session: &str,
    entry: Revision,
) -> Result<(Option<Revision>, bool), Error> {
    let statement = client.prepare_cached(LOOK).await?;
    let (number, stamp) = columns(entry);
    let row = client.query_opt(&statement, &[&session.as_bytes(), &number, &stamp]).await?;
    Ok(row.map_or((None, false), |row| (Some(revision(&row, 0)), row.get(2))))
}

/// PostgreSQL has no unsigned integers: stores the same bits as signed ones.
fn columns(revision: Revision) -> (i64, i64) {
    (revision.number.cast_signed(), revision.stamp.cast_signed())
}

fn revision(row: &Row, first: usize) -> Revision {
    Revision { number: unsigned(row, first), stamp: unsigned(row, first + 1) }
}

fn unsigned(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).cast_unsigned()
}
