//! The files of a path: the file itself, or all files in a folder.
use super::{CliError, folder::UNFINISHED, sidecar};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// An entry of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file that the user named.
    Named(PathBuf),
    /// A file in a folder that the user named; it need not be a session.
    Found(PathBuf),
    /// A file that is skipped, and why.
    Skipped(PathBuf, &'static str),
    /// A path that cannot be read.
    Unreadable(PathBuf, CliError),
}

/// The files of `path`, in the order of their names; for a folder, with all its subfolders.
pub(crate) fn entries(path: &Path) -> Vec<Entry> {
    if !path.is_dir() {
        return vec![Entry::Named(path.into())];
    }
    let mut entries = Vec::new();
    walk(path, &mut entries);
    entries
}

fn walk(folder: &Path, entries: &mut Vec<Entry>) {
    let listed = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut listed = match listed {
        Ok(listed) => listed,
        Err(error) => {
            return entries
                .push(Entry::Unreadable(folder.into(), CliError::reading(folder, &error)));
        }
    };
    listed.sort_by_key(fs::DirEntry::file_name);
    for entry in listed {
        let path = entry.path();
        match entry.file_type() {
            Err(error) => {
                let cli_error = CliError::reading(&path, &error);
                entries.push(Entry::Unreadable(path, cli_error));
            }
            // Its target may be in the folder too, or the link may form a cycle.
            Ok(kind) if kind.is_symlink() => entries.push(Entry::Skipped(path, "a link")),
            Ok(kind) if kind.is_dir() => walk(&path, entries),
            Ok(kind) if !kind.is_file() => entries.push(Entry::Skipped(path, "no regular file")),
            Ok(_) => {
                let what = ours(&entry.file_name().to_string_lossy()).or_else(|| of_sqlite(&path));
                entries.push(match what {
                    Some(what) => Entry::Skipped(path, what),
                    None => Entry::Found(path),
                });
            }
        }
    }
}

/// Which kind of file of this command it is, if any.
fn ours(name: &str) -> Option<&'static str> {
    let stamped = |mark: &str| {
        name.rsplit_once(mark)
            .is_some_and(|(_, time)| time.starts_with(|c: char| c.is_ascii_digit()))
    };
    if name.starts_with(UNFINISHED) {
        Some("left unfinished by tool-guard")
    } else if name.ends_with(sidecar::ENDING) {
        Some("checkpoints")
    } else if stamped(".bak-") {
        Some("a backup")
    } else if stamped(".archive-") {
        Some("an archive")
    } else {
        None
    }
}

/// Whether a file belongs to the SQLite database next to it.
fn of_sqlite(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let database = ["-wal", "-shm"].iter().find_map(|ending| name.strip_suffix(ending))?;
    path.with_file_name(database).is_file().then_some("part of the database beside it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_walked_in_order_and_without_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("b")).unwrap();
        for name in [
            "b/2.jsonl",
            "a.jsonl",
            "a.jsonl.bak-20260101T000000Z",
            "c.checkpoints",
            "d.db",
            "d.db-wal",
            "e-wal",
        ] {
            fs::write(at(name), "{}").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), at("b/circle")).unwrap();
        assert_eq!(
            entries(folder.path()),
            [
                Entry::Found(at("a.jsonl")),
                Entry::Skipped(at("a.jsonl.bak-20260101T000000Z"), "a backup"),
                Entry::Found(at("b/2.jsonl")),
                Entry::Skipped(at("b/circle"), "a link"),
                Entry::Skipped(at("c.checkpoints"), "checkpoints"),
                Entry::Found(at("d.db")),
                Entry::Skipped(at("d.db-wal"), "part of the database beside it"),
                Entry::Found(at("e-wal")),
            ]
        );
        assert_eq!(entries(&at("none")), [Entry::Named(at("none"))]);
    }
}
