//! OpenClaw's database of an agent's sessions, `agents/*/agent/openclaw-agent.sqlite`: the events of a session are the
//! lines of a file of its version 4.
//!
//! | table | what is kept in it, beside the events themselves |
//! |---|---|
//! | `transcript_event_identities` | of each event its id, its parent's, and its number |
//! | `session_transcript_active_events` | the events of the active branch: OpenClaw sends those |
//! | `session_transcript_index_state` | up to where these two are right; otherwise a turn fails |
//! | `transcript_rewrite_watermarks` | a number that changes with each rewrite |
//!
//! The table of texts for its search is left as it is: OpenClaw writes it when it next builds its index.
use super::{
    document::{Document, json_lines::JsonLines},
    stored::{NotReplaced, SessionDatabase},
    verdict::Failure,
};
use crate::files::{CliError, beside, open_regular, writer_of};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior,
    params,
};
use ruzstd::decoding::StreamingDecoder;
use serde::de::IgnoredAny;
use std::{
    ffi::OsStr,
    io::Read as _,
    path::{Path, PathBuf},
    rc::Rc,
};

/// The version of the tables that was tried, that of OpenClaw 2026.9.6.
const VERSION: i64 = 23;

/// The longest compressed event that OpenClaw writes, in bytes.
const LONGEST: u64 = 4 << 20;

/// Removes the events of a session and what is counted of them.
const REMOVE: [&str; 3] = [
    "DELETE FROM session_transcript_active_events WHERE session_id = ?1",
    "DELETE FROM transcript_event_identities WHERE session_id = ?1",
    "DELETE FROM transcript_events WHERE session_id = ?1",
];

const INSERT: &str = "INSERT INTO transcript_events (session_id, seq, event_json, created_at) \
    VALUES (?1, ?2, ?3, CAST(round(1000 * unixepoch(?3 ->> 'timestamp', 'subsec')) AS INTEGER))";

/// Whether each event follows the one before it: then the active branch is all of them.
const IS_CHAIN: &str = "SELECT min(CASE \
        WHEN seq = 0 THEN event_json ->> 'type' = 'session' \
        WHEN event_json ->> 'appendMode' IS NOT NULL THEN 0 \
        WHEN event_json ->> 'type' IN ('leaf', 'reset', 'branch_summary') THEN 0 \
        WHEN seq = 1 THEN event_json ->> 'parentId' IS NULL \
        ELSE event_json ->> 'parentId' IS before END) \
    FROM (SELECT *, lag(event_json ->> 'id') OVER (ORDER BY seq) AS before \
        FROM transcript_events WHERE session_id = ?1)";

/// Counts the events of a session.
const COUNT: [&str; 5] = [
    "INSERT INTO transcript_event_identities (session_id, event_id, seq, event_type, parent_id, \
        message_idempotency_key, created_at) \
     SELECT session_id, event_json ->> 'id', seq, event_json ->> 'type', event_json ->> 'parentId', \
        event_json ->> '$.message.idempotencyKey', created_at \
     FROM transcript_events WHERE session_id = ?1",
    "INSERT INTO session_transcript_active_events \
     SELECT session_id, seq - 1, seq, \
        CASE WHEN event_json -> 'message' IS NOT NULL \
            THEN count(event_json -> 'message') OVER (ORDER BY seq) - 1 END, \
        event_json ->> '$.message.excludeFromContext' IS NOT 1 \
     FROM transcript_events WHERE session_id = ?1 AND seq > 0",
    "UPDATE session_transcript_index_state SET needs_rebuild = 0, updated_at = unixepoch() * 1000, \
        (indexed_seq, active_event_count, leaf_event_id, active_message_count) = \
        (SELECT max(seq), max(seq), event_json ->> 'id', \
            (SELECT count(message_position) FROM session_transcript_active_events WHERE session_id = ?1) \
         FROM transcript_events WHERE session_id = ?1) \
     WHERE session_id = ?1",
    "UPDATE transcript_rewrite_watermarks SET generation = lower(hex(randomblob(16))), \
        updated_at = max(unixepoch() * 1000, updated_at + 1) WHERE session_id = ?1",
    "UPDATE session_windows SET transcript_updated_at = max(unixepoch() * 1000, \
        coalesce(transcript_updated_at, 0) + 1, coalesce(transcript_observed_at, 0) + 1) \
     WHERE session_id = ?1",
];

/// A database. It is opened for each look, since one that is to be changed must be open nowhere else.
pub(crate) struct OpenClaw {
    file: PathBuf,
    /// Opened to be changed.
    own: Option<Connection>,
}

impl OpenClaw {
    /// Opens a database for reading, next to its writers; `None` if it is not OpenClaw's.
    pub(crate) fn open(file: &Path) -> Result<Option<Self>, Failure> {
        let file = file.canonicalize().map_err(|error| CliError::reading(file, &error))?;
        if !may_be(&file) {
            return Ok(None);
        }
        let sql = "SELECT schema_version FROM schema_meta WHERE role = 'agent'";
        let version =
            opened(&file).and_then(|it| it.query_row(sql, [], |row| row.get::<_, i64>(0)));
        let Ok(version) = version else { return Ok(None) };
        if version != VERSION {
            let what = format!("has tables of OpenClaw's version {version}; known is {VERSION}");
            let help = "update tool-guard, or OpenClaw; nothing was read";
            return Err(CliError::new(what, help).into());
        }
        Ok(Some(Self { file, own: None }))
    }

    /// Looks into it.
    fn look<T>(
        &self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CliError> {
        let seen = match &self.own {
            Some(own) => look(own),
            None => opened(&self.file).and_then(|only| look(&only)),
        };
        seen.map_err(|error| self.cli_error(&error))
    }

    /// The events of a session as JSON lines.
    fn events(&self, id: &str) -> Result<Vec<u8>, CliError> {
        self.look(|connection| {
            let mut events = connection.prepare(
                "SELECT event_json, event_zstd FROM transcript_events \
                 WHERE session_id = ?1 ORDER BY seq",
            )?;
            let mut events = events.query([id])?;
            let mut lines = Vec::new();
            while let Some(event) = events.next()? {
                match event.get::<_, Option<String>>(0)? {
                    Some(json) => lines.extend_from_slice(json.as_bytes()),
                    None => {
                        // One that cannot be read is a line that is no JSON.
                        let packed: Vec<u8> = event.get(1)?;
                        let mut open = Vec::new();
                        let is_read = StreamingDecoder::new(&*packed)
                            .is_ok_and(|it| it.take(LONGEST).read_to_end(&mut open).is_ok());
                        lines.extend_from_slice(if is_read { &open } else { b"?" });
                    }
                }
                lines.push(b'\n');
            }
            Ok(lines)
        })
    }

    /// Replaces the events of a session, in a transaction that excludes all other programs.
    fn write(&self, id: &str, before: &[u8], after: &[u8]) -> Result<(), CliError> {
        let refused = |error| self.cli_error(&error);
        let own = self.own.as_ref().expect("it was opened to be changed");
        let exclusive = TransactionBehavior::Exclusive;
        let work = Transaction::new_unchecked(own, exclusive).map_err(refused)?;
        if self.events(id)? != before {
            let what = "was changed by OpenClaw meanwhile; it is as OpenClaw left it";
            return Err(CliError::new(what, "stop OpenClaw, and run the command again"));
        }
        let mut lines = before.split_inclusive(|byte| *byte == b'\n');
        if !lines.all(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok()) {
            let what = "has events that cannot be read; it is as it was";
            return Err(CliError::new(what, "tool-guard session check names their lines"));
        }
        let each = |statements: &[&str]| {
            statements.iter().try_for_each(|sql| work.execute(sql, [id]).map(drop))
        };
        let written = each(&REMOVE).and_then(|()| {
            let lines = after.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            for (seq, line) in (0_i64..).zip(lines) {
                work.execute(INSERT, params![id, seq, String::from_utf8_lossy(line)])?;
            }
            work.query_row(IS_CHAIN, [id], |row| row.get(0))
        });
        if !written.map_err(refused)? {
            return Err(CliError::new(
                "has branches or lines that only OpenClaw can write; it is as it was",
                "export the session, and repair that: tool-guard session export FILE > COPY.jsonl",
            ));
        }
        each(&COUNT).and_then(|()| work.commit()).map_err(refused)
    }

    fn cli_error(&self, error: &rusqlite::Error) -> CliError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                held(&writer_of(&self.file).unwrap_or_else(|| "another program".into()))
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => CliError::new(
                format!("is a damaged database ({error})"),
                "put a backup in its place",
            ),
            _ => CliError::new(
                format!("cannot be read or written: {error}; it is as it was"),
                "look at the file and at the disk, and run the command again",
            ),
        }
    }
}

impl SessionDatabase for OpenClaw {
    fn file(&self) -> &Path {
        &self.file
    }

    fn ids(&self) -> Result<Vec<String>, CliError> {
        self.look(|connection| {
            let sql = "SELECT DISTINCT session_id FROM transcript_events ORDER BY session_id";
            connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        })
    }

    fn content(&self, id: &str) -> Result<Box<dyn Document>, Failure> {
        Ok(Box::new(JsonLines::stored(self.events(id)?)?))
    }

    fn to_change(&self, id: &str) -> Result<Rc<dyn SessionDatabase>, Failure> {
        if let Some(other) = writer_of(&self.file) {
            return Err(held(&other).into());
        }
        let is_cold = self.look(|connection| {
            let sql = "SELECT 1 FROM session_transcript_cold_archives WHERE session_id = ?1";
            Ok(connection.query_row(sql, [id], |_| Ok(())).optional()?.is_some())
        })?;
        if is_cold {
            let what = "has the older events of this session in a file";
            return Err(CliError::new(what, "only OpenClaw can change it").into());
        }
        let open = || -> rusqlite::Result<_> {
            let own = Connection::open_with_flags(&self.file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            // A gateway that is idle holds no other lock than one that this mode finds.
            own.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            own.pragma_update(None, "foreign_keys", false)?;
            Ok(Self { file: self.file.clone(), own: Some(own) })
        };
        Ok(Rc::new(open().map_err(|error| self.cli_error(&error))?))
    }

    fn replace(
        &self,
        id: &str,
        before: &dyn Document,
        after: &dyn Document,
    ) -> Result<(), NotReplaced> {
        Ok(self.write(id, before.bytes(), after.bytes())?)
    }

    fn checkpoint(&self, _: &str) -> Result<String, CliError> {
        let what = "is OpenClaw's, which has no place for checkpoints";
        Err(CliError::new(what, "copy the session: tool-guard session export FILE > COPY.jsonl"))
    }
}

/// Whether the header is that of a database with a log, of no program that names itself, which counts its versions, if
/// these are not in the log: others are not opened.
fn may_be(file: &Path) -> bool {
    let mut header = [0; 72];
    let read = open_regular(file).and_then(|mut file| file.read_exact(&mut header));
    let has_version = header[60..64] != [0; 4] || beside(file, "-wal").exists();
    read.is_ok() && header[18..20] == [2, 2] && header[68..] == [0; 4] && has_version
}

/// Opens a database to read it, and leaves nothing beside it. Without a log no process has it open, or nothing can be
/// written there, and the file is all there is.
fn opened(file: &Path) -> rusqlite::Result<Connection> {
    let with = |flags, name: &OsStr| {
        let connection = Connection::open_with_flags(name, flags)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    if beside(file, "-wal").exists() {
        return with(OpenFlags::SQLITE_OPEN_READ_ONLY, file.as_os_str());
    }
    with(OpenFlags::SQLITE_OPEN_READ_WRITE, file.as_os_str()).or_else(|_| alone(file))
}

/// Opens a database to read it as if no process had it open, and none had left a log.
fn alone(file: &Path) -> rusqlite::Result<Connection> {
    let name = file.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)
}

/// The columns of a database that is not OpenClaw's, as `table.column`.
pub(super) fn columns(file: &Path) -> rusqlite::Result<Vec<String>> {
    let connection = if beside(file, "-wal").exists() { opened(file) } else { alone(file) }?;
    let sql = "SELECT it.name || '.' || own.name FROM sqlite_schema AS it, pragma_table_info(it.name) AS own";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn held(by: &str) -> CliError {
    let what = format!("{by} has the database open; nothing was changed");
    CliError::new(what, "stop it (openclaw gateway stop), and run the command again")
}
