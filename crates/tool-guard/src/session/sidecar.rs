//! Checkpoints: of a file, kept beside it as JSON lines; of a session in a database, its own.
use super::{Trouble, writers::beside};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};
use tr_integrity::Operation;

/// How the name of the file with the checkpoints of another ends.
pub(crate) const ENDING: &str = ".checkpoints";

/// A checkpoint: 002's fields, and of a file, how far into it it reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checkpoint {
    pub(crate) id: String,
    pub(crate) session_id: String,
    /// In milliseconds since the Unix epoch.
    pub(crate) timestamp: u64,
    /// How many messages stand before it.
    pub(crate) message_index: usize,
    /// BLAKE3 of the bytes of the file before it, or the session's own hash.
    pub(crate) content_hash: String,
    pub(crate) operation: Operation,
    /// How many bytes of the file stand before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<u64>,
    /// What [`SessionFile::rollback`](tr_integrity::SessionFile::rollback) calls this place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) point: Option<Box<str>>,
    /// Whether the operation of a session in a database succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) committed: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// What stands in a file of checkpoints.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// Lines that are no checkpoints: torn, or of another program. They stay.
    pub(crate) unreadable: Vec<usize>,
    ends_torn: bool,
}

/// The file with the checkpoints of `file`.
pub(crate) fn path(file: &Path) -> PathBuf {
    beside(file, ENDING)
}

/// Reads the checkpoints of `file`; none where there is no such file.
pub(crate) fn read(file: &Path) -> Result<Kept, Trouble> {
    let path = path(file);
    let reading = |error| Trouble::reading(&path, &error);
    match File::open(&path) {
        Ok(mut open) => read_from(&mut open).map_err(reading),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept::default()),
        Err(error) => Err(reading(error)),
    }
}

/// Adds a checkpoint that `make` makes; it is given the number that its id gets.
pub(crate) fn add(
    file: &Path,
    make: impl FnOnce(usize) -> Checkpoint,
) -> Result<Checkpoint, Trouble> {
    let path = path(file);
    let add = || {
        let mut open = open_to_add(&path)?;
        let kept = read_from(&mut open)?;
        let length = open.metadata()?.len();
        let made = make(kept.checkpoints.len() + kept.unreadable.len() + 1);
        let mut line = serde_json::to_string(&made).map_err(io::Error::other)?;
        line.push('\n');
        if kept.ends_torn {
            line.insert(0, '\n');
        }
        let written = open.write_all(line.as_bytes()).and_then(|()| open.sync_all());
        written.inspect_err(|_| {
            // As it was: without half a line, and without a file where there was none.
            let _ = if length == 0 { fs::remove_file(&path) } else { open.set_len(length) };
        })?;
        Ok(made)
    };
    let folder = file.parent().unwrap_or(file);
    add().map_err(|error| Trouble::writing(folder, &error))
}

/// Opens the file, alone, so that two at once do not get one number.
fn open_to_add(path: &Path) -> io::Result<File> {
    loop {
        let open = File::options().read(true).append(true).create(true).open(path)?;
        open.lock()?;
        let file = |found: &fs::Metadata| (found.dev(), found.ino());
        let mine = file(&open.metadata()?);
        // Another that could not write may have removed it meanwhile.
        if fs::metadata(path).is_ok_and(|here| file(&here) == mine) {
            return Ok(open);
        }
    }
}

fn read_from(open: &mut File) -> io::Result<Kept> {
    let mut bytes = Vec::new();
    open.read_to_end(&mut bytes)?;
    let mut kept =
        Kept { ends_torn: bytes.last().is_some_and(|last| *last != b'\n'), ..Kept::default() };
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        match serde_json::from_slice::<Checkpoint>(line) {
            Ok(checkpoint) if checkpoint.length.is_some() => kept.checkpoints.push(checkpoint),
            _ if line.iter().all(u8::is_ascii_whitespace) => {}
            _ => kept.unreadable.push(at + 1),
        }
    }
    Ok(kept)
}

impl Checkpoint {
    /// One of a session in a database.
    pub(crate) fn of_session(checkpoint: &tr_integrity::Checkpoint) -> Self {
        Self {
            id: checkpoint.id.to_string(),
            session_id: checkpoint.session_id.to_string(),
            timestamp: checkpoint.timestamp,
            message_index: checkpoint.message_index,
            content_hash: checkpoint.content_hash.to_string(),
            operation: checkpoint.operation,
            length: None,
            point: None,
            committed: Some(checkpoint.is_committed()),
            note: None,
        }
    }
}

impl Kept {
    /// Those of a session in a database.
    pub(crate) fn of_session(checkpoints: Vec<Checkpoint>) -> Self {
        Self { checkpoints, ..Self::default() }
    }

    /// The checkpoint of this id, or of this point, or of this number at the id's end; the last one
    /// if there are two.
    pub(crate) fn get(&self, id: &str) -> Option<&Checkpoint> {
        let is_named = |checkpoint: &&Checkpoint| {
            checkpoint.id == id || checkpoint.point.as_deref() == Some(id)
        };
        let named = self.checkpoints.iter().rfind(is_named);
        named.or_else(|| {
            let ends = |checkpoint: &&Checkpoint| {
                checkpoint.id.rsplit_once('#').is_some_and(|(_, number)| number == id)
            };
            self.checkpoints.iter().rfind(ends)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(number: usize) -> Checkpoint {
        Checkpoint {
            id: format!("s#{number}"),
            session_id: "s".into(),
            timestamp: 1,
            message_index: 2,
            content_hash: "00".into(),
            operation: Operation::Manual,
            length: Some(3),
            point: None,
            committed: None,
            note: None,
        }
    }

    #[test]
    fn a_torn_line_costs_itself_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.jsonl");
        assert!(read(&file).unwrap().checkpoints.is_empty());
        add(&file, checkpoint).unwrap();
        let whole = fs::read(path(&file)).unwrap();
        let torn = [&whole[..], &whole[..20]].concat();
        fs::write(path(&file), &torn).unwrap();
        let added = add(&file, checkpoint).unwrap();
        assert_eq!(added.id, "s#3", "a torn line's number is not given again");

        let kept = read(&file).unwrap();
        assert_eq!(kept.checkpoints, [checkpoint(1), checkpoint(3)]);
        assert_eq!(kept.unreadable, [2]);
        assert!(fs::read(path(&file)).unwrap().starts_with(&torn), "nothing is rewritten");
        assert_eq!(kept.get("3"), kept.get("s#3"));
        assert_eq!(kept.get("2"), None);
    }

    #[test]
    fn the_fields_are_those_of_002() {
        let line = serde_json::to_value(checkpoint(1)).unwrap();
        let expected = serde_json::json!({
            "id": "s#1", "sessionId": "s", "timestamp": 1, "messageIndex": 2,
            "contentHash": "00", "operation": "manual", "length": 3,
        });
        assert_eq!(line, expected);
    }
}
