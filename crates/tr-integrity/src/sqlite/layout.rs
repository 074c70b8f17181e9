//! The tables, as schema migrations.
use tr_sqlite::Schema;

/// Sessions and their logs.
pub(super) const SESSIONS: Schema = Schema::new("sessions", &[FIRST]);

/// An append reads a session's number and head by their keys and writes one row, usually to one
/// page. So the key of the log is the rowid, which combines a session's number and a revision: a
/// key of two columns would need a separate index, or, in a table without rowids, an overflow page
/// for most of each body.
const FIRST: &str = "
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY CHECK (number < 2147483648),
    id TEXT NOT NULL UNIQUE,
    first INTEGER AS (number << 32),
    last INTEGER AS ((number << 32) + 4294967295)
) STRICT;

CREATE TABLE session_log (
    place INTEGER PRIMARY KEY,
    session INTEGER AS (place >> 32),
    revision INTEGER AS (place & 4294967295),
    stamp INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE VIEW sessions_now AS
SELECT
    id,
    max(revision) AS revision,
    datetime(at / 1000, 'unixepoch') AS changed_at,
    count(*) AS entries,
    sum(length(body)) AS bytes
FROM sessions JOIN session_log ON place BETWEEN first AND last
GROUP BY number;
";
