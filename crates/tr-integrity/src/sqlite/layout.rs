//! The tables, as the steps that made them.
use tr_sqlite::Schema;

/// Sessions and their logs.
pub(super) const SESSIONS: Schema = Schema::new("sessions", &[FIRST]);

/// An append reads a session's number and head by their keys, and writes one row.
const FIRST: &str = "
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE session_log (
    session INTEGER NOT NULL REFERENCES sessions (number),
    revision INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, revision)
) STRICT, WITHOUT ROWID;

CREATE VIEW sessions_now AS
SELECT
    id,
    max(revision) AS revision,
    datetime(at / 1000, 'unixepoch') AS changed_at,
    count(*) AS entries,
    sum(length(body)) AS bytes
FROM sessions JOIN session_log ON session = number
GROUP BY number;
";
