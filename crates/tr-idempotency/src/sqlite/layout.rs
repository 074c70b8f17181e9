//! The tables.
use tr_sqlite::Schema;

/// Released steps never change; a change is a new step.
pub(super) const CALLS: Schema = Schema::new("calls", &[FIRST, SECOND, THIRD, FOURTH]);

/// `over_at` is [`Record::over_at`](crate::protocol::Record::over_at), and `pinned` is
/// [`is_pinned`](crate::protocol::Record::is_pinned), of the record as written. Long columns come
/// last, so that reads of the others skip them.
const FIRST: &str = "
CREATE TABLE calls (
    key BLOB NOT NULL UNIQUE,
    digest BLOB NOT NULL,
    mutating INTEGER NOT NULL,
    state TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    version INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    unknown_ttl INTEGER NOT NULL,
    over_at INTEGER AS (CASE state WHEN 'inflight' THEN until + unknown_ttl ELSE until END),
    pinned INTEGER AS (state = 'inflight' OR (state = 'unknown' AND mutating)),
    tool TEXT NOT NULL,
    session TEXT,
    notes BLOB NOT NULL,
    body BLOB
) STRICT;

CREATE INDEX calls_by_end ON calls (pinned, over_at);
CREATE INDEX calls_open ON calls (state, claimed_at) WHERE state IN ('inflight', 'unknown');
CREATE INDEX calls_by_session ON calls (session) WHERE session IS NOT NULL;
CREATE INDEX calls_by_tool ON calls (tool);

-- What is true of all calls: the last epoch, the last time, how many there are.
CREATE TABLE calls_head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    records INTEGER NOT NULL
) STRICT;
INSERT INTO calls_head VALUES (1, 0, 0, 0);

-- Counted here and not by the program, so that rows may be deleted by hand.
CREATE TRIGGER calls_added AFTER INSERT ON calls BEGIN
    UPDATE calls_head SET records = records + 1;
END;
CREATE TRIGGER calls_removed AFTER DELETE ON calls BEGIN
    UPDATE calls_head SET records = records - 1;
END;

-- For people, whose sqlite3 may be an old one.
CREATE VIEW calls_now AS
SELECT lower(hex(key)) AS key, tool, session,
    CASE WHEN state = 'inflight' AND until <= strftime('%s', 'now') * 1000
        THEN 'unknown' ELSE state END AS state,
    mutating, runs, epoch,
    datetime(claimed_at / 1000, 'unixepoch') AS claimed,
    datetime(changed_at / 1000, 'unixepoch') AS changed,
    datetime(until / 1000, 'unixepoch') AS until,
    length(body) AS body_bytes
FROM calls;
";

/// Which process holds the claim, by the name of its file in the folder of
/// [`Owners`](super::owners::Owners); `NULL` where there is no such folder.
const SECOND: &str = "ALTER TABLE calls ADD COLUMN holder INTEGER";

/// `mark` says under which key the records were written; `ran` and `over_ran` are of the clock that counts
/// how long the file has been in use.
const THIRD: &str = "
ALTER TABLE calls_head ADD COLUMN mark BLOB NOT NULL DEFAULT x'';
ALTER TABLE calls_head ADD COLUMN ran INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN over_ran INTEGER NOT NULL DEFAULT 0;
DROP INDEX calls_by_end;
CREATE INDEX calls_by_end ON calls (pinned, over_ran);
";

/// Equal calls of a session, and those of it that have not ended, are found without the others. The second index repeats
/// the condition [`UNENDED`](super::selection::UNENDED).
const FOURTH: &str = "
DROP INDEX calls_by_session;
CREATE INDEX calls_by_session ON calls (session, digest) WHERE session IS NOT NULL;
CREATE INDEX calls_unended ON calls (session) WHERE session IS NOT NULL
    AND state NOT IN ('done', 'failed_never', 'failed_when_asked', 'failed_freely', 'cancelled');
";
