//! Checkpoints: of a file, in JSON lines next to it; of a session in a database, its own.
mod kept;

pub(crate) use self::kept::{Checkpoint, Kept, hash};

use crate::files::{CliError, File, Folder, beside, refuse_others};
use rustix::{fs::OFlags, process::geteuid};
use std::{
    ffi::OsStr,
    fs::{self, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// The suffix of a checkpoint file's name.
pub(crate) const ENDING: &str = ".checkpoints";

/// A longer file is no checkpoint file.
const LONGEST: u64 = 16 << 20;

/// The checkpoint file of `file`.
pub(crate) fn path(file: &Path) -> PathBuf {
    beside(file, ENDING)
}

/// Reads the checkpoints of `file`; none if there is no checkpoint file.
pub(crate) fn read(file: &File) -> Result<Kept, CliError> {
    let path = path(Path::new(&file.name));
    match file.folder.open_file(path.as_os_str(), OFlags::RDONLY) {
        Ok(open) => read_from(&open, &path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept::default()),
        Err(error) => Err(unusable(&path, &error)),
    }
}

/// Adds the checkpoint that `make` returns; `make` gets the number for its id.
pub(crate) fn add(
    file: &File,
    make: impl FnOnce(usize) -> Checkpoint,
) -> Result<Checkpoint, CliError> {
    let folder = &file.folder;
    refuse_others(folder, &file.found)?;
    let path = path(Path::new(&file.name));
    let open = open_to_add(folder, path.as_os_str())?;
    let kept = read_from(&open, &path)?;
    let made = make(kept.checkpoints.len() + kept.unreadable.len() + 1);
    let add = || {
        let length = open.metadata()?.len();
        let mut line = serde_json::to_string(&made).map_err(io::Error::other)?;
        line.push('\n');
        if kept.ends_torn {
            line.insert(0, '\n');
        }
        let written = (&open).write_all(line.as_bytes()).and_then(|()| open.sync_all());
        // Undoes a partial write, and removes a file that did not exist before.
        written.inspect_err(|_| match length {
            0 => folder.remove(path.as_os_str()),
            _ => drop(open.set_len(length)),
        })
    };
    add().map_err(|error| CliError::writing(&folder.path, &error))?;
    Ok(made)
}

/// Opens the file exclusively, so that two processes do not use the same number. Only the user can
/// access it: a file that another user created may be a hard link to another file, and is not
/// written.
fn open_to_add(folder: &Folder, name: &OsStr) -> Result<fs::File, CliError> {
    let path = Path::new(name);
    loop {
        let open = match folder.open_file(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(unusable(path, &error));
            }
            open => open.map_err(|error| CliError::writing(&folder.path, &error))?,
        };
        let found = open.metadata().map_err(|error| unusable(path, &error))?;
        if found.uid() != geteuid().as_raw() || found.nlink() > 1 {
            let what = format!("belongs to user {}, or has other names", found.uid());
            return Err(unusable(path, &io::Error::other(what)));
        }
        open.set_permissions(fs::Permissions::from_mode(0o600))
            .map_err(|error| CliError::writing(&folder.path, &error))?;
        if let Err(TryLockError::WouldBlock) = open.try_lock() {
            return Err(CliError::new(
                "another program is adding a checkpoint to it, perhaps this one in another window",
                "run the command again when that has ended",
            ));
        }
        // A process whose write failed may have removed it meanwhile.
        if folder.has(name, &open) {
            return Ok(open);
        }
    }
}

fn unusable(path: &Path, error: &io::Error) -> CliError {
    let path = path.display();
    let what = format!("has checkpoints that cannot be used: {path}: {error}");
    CliError::new(what, format!("look at {path} beside it, and move it away if it is not yours"))
}

/// Allocates for the bytes read, not for the file's claimed length.
fn read_from(open: &fs::File, path: &Path) -> Result<Kept, CliError> {
    let mut bytes = Vec::new();
    let read = open.take(LONGEST + 1).read_to_end(&mut bytes);
    if read.map_err(|error| unusable(path, &error))? as u64 > LONGEST {
        return Err(unusable(path, &io::Error::other("is longer than 16 MiB")));
    }
    Ok(Kept::read(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_integrity::Operation;

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
        fs::write(&file, "{}").unwrap();
        let open = File::open(&file).unwrap();
        assert!(read(&open).unwrap().checkpoints.is_empty());
        add(&open, checkpoint).unwrap();
        let whole = fs::read(path(&file)).unwrap();
        let torn = [&whole[..], &whole[..20]].concat();
        fs::write(path(&file), &torn).unwrap();
        let added = add(&open, checkpoint).unwrap();
        assert_eq!(added.id, "s#3", "a torn line's number is not given again");

        let kept = read(&open).unwrap();
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
