//! Replaces a file atomically and keeps the old one next to it.
//!
//! ```text
//! new file beside the old one, synced ─► second name for the old one ─► exchange of both, synced
//!      a crash: the old file               the old file, twice              the new file
//! ```
//!
//! A program that opened the file before the exchange may write to the old one afterwards. If one
//! has, or still may, the files are exchanged again, and what was appended to the new one meanwhile
//! is appended to the old one.
#[cfg(test)]
mod tests;

use super::{
    error::CliError,
    file::{File, Stamp, changed},
    folder::{Folder, Temporary, beside},
    metadata::copy_metadata,
    other_programs::writer_of,
    other_users::refuse_others,
};
use rustix::fs::OFlags;
use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// The new file with a temporary name, written and synced.
#[derive(Debug)]
pub(crate) struct Staged<'s> {
    source: &'s File,
    bytes: &'s [u8],
    new: Temporary<'s>,
}

/// The same, with a backup name for the old file.
#[derive(Debug)]
pub(crate) struct BackedUp<'s> {
    staged: Staged<'s>,
    stamp: Stamp,
    ending: &'s str,
    backup: OsString,
}

/// How often the programs are looked for that have the new file open, before its end is copied.
const LOOKS: usize = 100;

/// Replaces `source` with `new`, if `source` still matches `stamp`. Returns the path of the old
/// file: its own with `ending`, and a number if that name is taken.
pub(crate) fn replace(
    source: &File,
    stamp: Stamp,
    ending: &str,
    new: &[u8],
) -> Result<PathBuf, CliError> {
    Staged::new(source, new)?.back_up(stamp, ending)?.exchange()
}

impl<'s> Staged<'s> {
    fn new(source: &'s File, bytes: &'s [u8]) -> Result<Self, CliError> {
        let folder = &source.folder;
        let new = written(folder, &source.open, |mut new| new.write_all(bytes));
        let new = new.map_err(|error| CliError::writing(&folder.path, &error))?;
        Ok(Self { source, bytes, new })
    }

    fn back_up(self, stamp: Stamp, ending: &'s str) -> Result<BackedUp<'s>, CliError> {
        let File { folder, name, open, .. } = self.source;
        if !folder.has(name, open) || self.source.stamp()? != stamp {
            return Err(changed());
        }
        // A copy where the file system has no hard links.
        let link = |second: &OsStr| folder.link(open, name, second);
        let backup = take_free_name(name, ending, link)
            .or_else(|_| copy(self.source, ending))
            .and_then(|backup| folder.sync().map(|()| backup))
            .map_err(|error| CliError::writing(&folder.path, &error))?;
        Ok(BackedUp { staged: self, stamp, ending, backup })
    }
}

impl BackedUp<'_> {
    fn exchange(self) -> Result<PathBuf, CliError> {
        let Staged { source, new, .. } = &self.staged;
        let (folder, name) = (&source.folder, &source.name);
        let is_both = new.exchange(name).map_err(|error| {
            // The old file still has its own name.
            folder.remove(&self.backup);
            CliError::writing(&folder.path, &error)
        })?;
        // The process table lists a file whose name was taken as deleted.
        let old = match is_both {
            true => folder.path.join(&new.name),
            false => beside(&source.real, " (deleted)"),
        };
        let is_replaced =
            folder.has(name, &new.file) && (!is_both || folder.has(&new.name, &source.open));
        // A program that no longer has it open has written before it is read here.
        if !is_replaced || writer_of(&old).is_some() || source.stamp() != Ok(self.stamp) {
            return Err(if is_both { self.go_back(&old) } else { self.late() });
        }
        if is_both {
            folder.remove(&new.name);
        }
        let backup = folder.path.join(&self.backup);
        folder.sync().map_err(|error| {
            CliError::new(
                format!("was replaced, but the disk does not confirm it: {error}"),
                format!("the old file is {}", backup.display()),
            )
        })?;
        Ok(backup)
    }

    /// Exchanges the files again, and takes what was appended to the new one into the old one;
    /// `replaced` is the path of the file that is not in place.
    fn go_back(self, replaced: &Path) -> CliError {
        let Staged { source, bytes, new } = &self.staged;
        let folder = &source.folder;
        if new.exchange_back(&source.name).is_err() {
            return self.late();
        }
        if !folder.has(&new.name, &new.file) {
            // Another program has replaced the new file: its file stays, and what it replaced too.
            let _ = new.exchange_back(&source.name);
            return self.late();
        }
        folder.remove(&self.backup);
        (0..LOOKS).find(|_| writer_of(replaced).is_none());
        let carried = new.bytes().and_then(|now| match now.strip_prefix(*bytes) {
            Some([]) => Ok(true),
            Some(tail) if tail.ends_with(b"\n") => folder.append(&source.name, tail),
            _ => Ok(false),
        });
        if matches!(carried, Ok(true)) {
            return changed();
        }
        let kept = take_free_name(&source.name, self.ending, |name| new.give_name(name));
        let what = "was changed by another program meanwhile, at the very moment of the exchange";
        written_to(folder, what, "a part of what it wrote is in", kept)
    }

    /// The file in place is the new one, or another program's.
    fn late(self) -> CliError {
        let Staged { source, .. } = &self.staged;
        let folder = &source.folder;
        let kept = if folder.has(&self.backup, &source.open) {
            Ok(self.backup)
        } else {
            copy(source, self.ending)
        };
        let what = "another program wrote to it at the very moment of the exchange";
        written_to(folder, what, "the file that was there is", kept)
    }
}

/// Another program wrote to the file; `what_is` says what is kept.
fn written_to(folder: &Folder, what: &str, what_is: &str, kept: io::Result<OsString>) -> CliError {
    match kept {
        Ok(kept) => {
            let kept = folder.path.join(kept);
            CliError::new(what, format!("stop that program; {what_is} {}", kept.display()))
        }
        Err(error) => CliError::writing(&folder.path, &error),
    }
}

/// A new file in `folder` with the output of `write` and the metadata of `old`, synced.
fn written<'f>(
    folder: &'f Folder,
    old: &fs::File,
    write: impl FnOnce(&fs::File) -> io::Result<()>,
) -> io::Result<Temporary<'f>> {
    let new = folder.temporary()?;
    write(&new.file)?;
    copy_metadata(old, &new.file)?;
    new.file.sync_all()?;
    Ok(new)
}

/// Copies the old file to a backup name, its own with `ending`.
fn copy(source: &File, ending: &str) -> io::Result<OsString> {
    let old = source.rewound().map_err(io::Error::other)?;
    let copied = |mut new: &fs::File| io::copy(&mut &*old, &mut new).map(drop);
    let copy = written(&source.folder, old, copied)?;
    take_free_name(&source.name, ending, |name| copy.give_name(name))
}

/// Writes a new file next to `old`, with its owner and permissions. Its name is that of `old` with
/// `part`, and with `ending` like a backup's.
pub(crate) fn keep_bytes(
    old: &Path,
    part: &str,
    ending: &str,
    bytes: &[u8],
) -> Result<PathBuf, CliError> {
    let (folder, name) = Folder::of(old).map_err(|error| CliError::reading(old, &error))?;
    let old = folder.open_file(&name, OFlags::RDONLY);
    let old = old.map_err(|error| CliError::reading(&folder.path.join(&name), &error))?;
    let writing = |error| CliError::writing(&folder.path, &error);
    refuse_others(&folder, &old.metadata().map_err(writing)?)?;
    let keep = || {
        let new = written(&folder, &old, |mut new| new.write_all(bytes))?;
        let name = take_free_name(beside(Path::new(&name), part).as_os_str(), ending, |it| {
            new.give_name(it)
        })?;
        folder.sync().map(|()| folder.path.join(name))
    };
    keep().map_err(writing)
}

/// Calls `take` with the name `base` and `ending`, then with a number, until a name is free.
/// Existing files are kept.
fn take_free_name(
    base: &OsStr,
    ending: &str,
    take: impl Fn(&OsStr) -> io::Result<()>,
) -> io::Result<OsString> {
    let mut number = 1;
    loop {
        let ending = if number == 1 { ending.to_owned() } else { format!("{ending}-{number}") };
        let name = beside(Path::new(base), &ending).into_os_string();
        match take(&name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}
