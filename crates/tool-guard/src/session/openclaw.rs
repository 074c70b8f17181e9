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
use serde::Deserialize;
use std::{
    collections::HashMap,
    ffi::OsStr,
    fmt,
    io::Read as _,
    path::{Path, PathBuf},
    rc::Rc,
};

/// The version of the tables that was tried, that of OpenClaw 2026.9.6.
const VERSION: i64 = 23;

/// The longest compressed event that OpenClaw writes, in bytes.
const LONGEST: u64 = 4 << 20;

/// The tables that have rows of a session for each event.
const OF_EVENTS: [&str; 3] =
    ["session_transcript_active_events", "transcript_event_identities", "transcript_events"];

/// A database. It is opened for each look, since one that is to be changed must be open nowhere else.
pub(crate) struct OpenClaw {
    file: PathBuf,
    /// Opened to be changed.
    own: Option<Connection>,
}

/// What the other tables say of an event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    parent_id: Option<String>,
    append_mode: Option<String>,
    message: Option<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    idempotency_key: Option<String>,
    #[serde(default)]
    exclude_from_context: bool,
}

impl OpenClaw {
    /// Opens a database for reading, next to its writers; `None` if it is not OpenClaw's.
    pub(crate) fn open(file: &Path) -> Result<Option<Self>, Failure> {
        let file = file.canonicalize().map_err(|error| CliError::reading(file, &error))?;
        if !may_be(&file) {
            return Ok(None);
        }
        let Ok(connection) = opened(&file) else { return Ok(None) };
        let version = "SELECT schema_version FROM schema_meta WHERE role = 'agent'";
        let Ok(version) = connection.query_row(version, [], |row| row.get::<_, i64>(0)) else {
            return Ok(None);
        };
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

    /// The events of a session as JSON lines, and when each was written.
    fn events(&self, id: &str) -> Result<(Vec<u8>, Vec<i64>), CliError> {
        self.look(|connection| {
            let mut events = connection.prepare(
                "SELECT event_json, event_zstd, created_at FROM transcript_events \
                 WHERE session_id = ?1 ORDER BY seq",
            )?;
            let mut events = events.query([id])?;
            let (mut lines, mut times) = (Vec::new(), Vec::new());
            while let Some(event) = events.next()? {
                match event.get::<_, Option<String>>(0)? {
                    Some(json) => lines.extend_from_slice(json.as_bytes()),
                    None => {
                        // One that cannot be read is a line that is no JSON.
                        let packed: Vec<u8> = event.get(1)?;
                        if let Ok(open) = StreamingDecoder::new(&*packed) {
                            let _ = open.take(LONGEST).read_to_end(&mut lines);
                        }
                    }
                }
                lines.push(b'\n');
                times.push(event.get(2)?);
            }
            Ok((lines, times))
        })
    }

    /// Replaces the events of a session, in a transaction that excludes all other programs.
    fn write(&self, id: &str, before: &[u8], after: &[u8]) -> Result<(), CliError> {
        let refused = |error| self.cli_error(&error);
        let own = self.own.as_ref().expect("it was opened to be changed");
        let exclusive = TransactionBehavior::Exclusive;
        let work = Transaction::new_unchecked(own, exclusive).map_err(refused)?;
        let (now, times) = self.events(id)?;
        if now != before {
            let what = "was changed by OpenClaw meanwhile; it is as OpenClaw left it";
            return Err(CliError::new(what, "stop OpenClaw, and run the command again"));
        }
        let old = parsed(before).zip(times);
        let times = old.filter_map(|(event, time)| Some((event.ok()?.id, time))).collect();
        rewrite(&work, id, &chain(after)?, &times).and_then(|()| work.commit()).map_err(refused)
    }

    fn cli_error(&self, error: &rusqlite::Error) -> CliError {
        cli_error(&self.file, error)
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
        Ok(Box::new(JsonLines::stored(self.events(id)?.0)?))
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
    with(OpenFlags::SQLITE_OPEN_READ_WRITE, file.as_os_str()).or_else(|_| {
        let name =
            file.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        with(flags, format!("file:{name}?immutable=1").as_ref())
    })
}

/// Puts these events in the place of those of a session; `times` says when the old ones were written.
fn rewrite(
    work: &Transaction<'_>,
    id: &str,
    events: &[(Event, &str)],
    times: &HashMap<String, i64>,
) -> rusqlite::Result<()> {
    for table in OF_EVENTS {
        work.execute(&format!("DELETE FROM {table} WHERE session_id = ?1"), [id])?;
    }
    let (mut time, mut messages, mut leaf) = (0, 0_i64, "");
    for (seq, (event, json)) in (0_i64..).zip(events) {
        let Event { kind, id: event_id, parent_id, message, .. } = event;
        (time, leaf) = (times.get(event_id).copied().unwrap_or(time), event_id);
        work.execute(
            "INSERT INTO transcript_events (session_id, seq, event_json, created_at) \
             VALUES (?1, ?2, ?3, ?4)",
            params![id, seq, json, time],
        )?;
        let key = message.as_ref().and_then(|message| message.idempotency_key.as_ref());
        work.execute(
            "INSERT INTO transcript_event_identities (session_id, event_id, seq, event_type, \
             parent_id, message_idempotency_key, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![id, event_id, seq, kind, parent_id, key, time],
        )?;
        if seq > 0 {
            let position = message.as_ref().map(|_| messages);
            messages += i64::from(position.is_some());
            let is_sent = message.as_ref().is_none_or(|message| !message.exclude_from_context);
            work.execute(
                "INSERT INTO session_transcript_active_events VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, seq - 1, seq, position, is_sent],
            )?;
        }
    }
    let last = events.len() as i64 - 1;
    work.execute(
        "UPDATE session_transcript_index_state SET indexed_seq = ?2, leaf_event_id = ?3, \
         needs_rebuild = 0, active_event_count = ?2, active_message_count = ?4, \
         updated_at = unixepoch() * 1000 WHERE session_id = ?1",
        params![id, last, leaf, messages],
    )?;
    for changed in [
        "UPDATE transcript_rewrite_watermarks SET generation = lower(hex(randomblob(16))), \
         updated_at = max(unixepoch() * 1000, updated_at + 1) WHERE session_id = ?1",
        "UPDATE session_windows SET transcript_updated_at = max(unixepoch() * 1000, \
         coalesce(transcript_updated_at, 0) + 1, coalesce(transcript_observed_at, 0) + 1) \
         WHERE session_id = ?1",
    ] {
        work.execute(changed, [id])?;
    }
    Ok(())
}

/// The events, if each follows the one before it: then the active branch is all of them.
fn chain(lines: &[u8]) -> Result<Vec<(Event, &str)>, CliError> {
    let texts = std::str::from_utf8(lines).unwrap_or_default().lines();
    let events: Vec<_> = parsed(lines).zip(texts).collect();
    let is_chain = |one: &Event, next: &Event| {
        let is_own = one.kind == "session" && next.parent_id.is_none();
        is_own || next.parent_id.as_deref() == Some(&*one.id)
    };
    let plain = |event: &Event| {
        event.append_mode.is_none() && !matches!(&*event.kind, "leaf" | "reset" | "branch_summary")
    };
    let all: Result<Vec<_>, _> =
        events.into_iter().map(|(event, text)| event.map(|event| (event, text))).collect();
    match all {
        Ok(all)
            if all.first().is_some_and(|(event, _)| event.kind == "session")
                && all.iter().all(|(event, _)| plain(event))
                && all.windows(2).all(|two| is_chain(&two[0].0, &two[1].0)) =>
        {
            Ok(all)
        }
        _ => Err(CliError::new(
            "has branches or lines that only OpenClaw can write; it is as it was",
            "export the session, and repair that: tool-guard session export FILE > COPY.jsonl",
        )),
    }
}

fn parsed(lines: &[u8]) -> impl Iterator<Item = serde_json::Result<Event>> + '_ {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(serde_json::from_slice)
}

fn held(by: &str) -> CliError {
    let what = format!("{by} has the database open; nothing was changed");
    CliError::new(what, "stop it (openclaw gateway stop), and run the command again")
}

fn cli_error(file: &Path, error: &rusqlite::Error) -> CliError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            held(&writer_of(file).unwrap_or_else(|| "another program".into()))
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            CliError::new(format!("is a damaged database ({error})"), "put a backup in its place")
        }
        _ => CliError::new(
            format!("cannot be read or written: {error}; it is as it was"),
            "look at the file and at the disk, and run the command again",
        ),
    }
}

impl fmt::Debug for OpenClaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClaw").field("file", &self.file).finish_non_exhaustive()
    }
}
