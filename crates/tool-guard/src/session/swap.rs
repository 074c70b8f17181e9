//! Puts a new file in the place of an old one, which stays beside it.
//!
//! ```text
//! new file beside the old one, synced ─► second name for the old one ─► rename over it, synced
//!      a crash: the old file               the old file, twice             the new file
//! ```
use super::{
    Trouble,
    file::{File, Stamp},
    writers::beside,
};
use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, fchown},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// How the names of files begin that are not in their place yet. A crash may leave one behind.
pub(crate) const UNFINISHED: &str = ".tool-guard-";

/// A new file beside the old one, whole and on the disk.
#[derive(Debug)]
pub(crate) struct Staged<'s> {
    source: &'s File,
    new: NamedTempFile,
}

/// The same, with a second name for the old one.
#[derive(Debug)]
pub(crate) struct BackedUp<'s> {
    staged: Staged<'s>,
    stamp: Stamp,
    backup: PathBuf,
}

/// Replaces `source` by `new`, if it still is what `stamp` says. Returns the path
/// at which the old file stays: its own with `ending`, and a number where that is taken.
pub(crate) fn replace(
    source: &File,
    stamp: Stamp,
    ending: &str,
    new: &[u8],
) -> Result<PathBuf, Trouble> {
    Staged::new(source, new)?.back_up(stamp, ending)?.exchange()
}

impl<'s> Staged<'s> {
    fn new(source: &'s File, bytes: &[u8]) -> Result<Self, Trouble> {
        let stage = || {
            let new = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(source.folder())?;
            new.as_file().write_all(bytes)?;
            dress_like(source.found(), new.as_file())?;
            new.as_file().sync_all()?;
            Ok(Self { source, new })
        };
        stage().map_err(|error| Trouble::writing(source.folder(), &error))
    }

    fn back_up(self, stamp: Stamp, ending: &str) -> Result<BackedUp<'s>, Trouble> {
        self.source.refuse_changes(&stamp)?;
        let folder = self.source.folder();
        let backup = keep(self.source.real(), self.source.real(), ending)
            .and_then(|backup| sync(folder).map(|()| backup))
            .map_err(|error| Trouble::writing(folder, &error))?;
        Ok(BackedUp { staged: self, stamp, backup })
    }
}

impl BackedUp<'_> {
    fn exchange(self) -> Result<PathBuf, Trouble> {
        let Staged { source, new } = self.staged;
        if let Err(error) = new.persist(source.real()) {
            // The old file still has its own name.
            let _ = fs::remove_file(&self.backup);
            return Err(Trouble::writing(source.folder(), &error.error));
        }
        sync(source.folder()).map_err(|error| {
            Trouble::new(
                format!("is mended, but the disk does not confirm it: {error}"),
                format!("the old file is {}", self.backup.display()),
            )
        })?;
        if !source.is_still(&self.stamp) {
            return Err(Trouble::new(
                "another program wrote to it at the very moment of the exchange",
                format!("stop that program; what it wrote is in {}", self.backup.display()),
            ));
        }
        Ok(self.backup)
    }
}

/// Gives `new` the old file's owner and permissions.
fn dress_like(old: &fs::Metadata, new: &fs::File) -> io::Result<()> {
    let now = new.metadata()?;
    if (old.uid(), old.gid()) != (now.uid(), now.gid()) {
        fchown(new, Some(old.uid()), Some(old.gid())).map_err(|error| {
            let what = format!("the new file cannot get the old one's owner: {error}");
            io::Error::new(error.kind(), what)
        })?;
    }
    new.set_permissions(old.permissions())
}

/// Gives the old file a second name, `place` with `ending`, or makes a copy where the file system
/// has no links. What has that name already stays: the new name then has a number.
fn keep(old: &Path, place: &Path, ending: &str) -> io::Result<PathBuf> {
    let mut tries = 1..;
    loop {
        let number = tries.next().expect("numbers do not end");
        let name = match number {
            1 => beside(place, ending),
            _ => beside(place, &format!("{ending}-{number}")),
        };
        let kept = fs::hard_link(old, &name).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            _ => copy(old, &name),
        });
        match kept {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes a file of its own beside `old`, with its owner and permissions: its name is that of `old`
/// with `part`, and with `ending` as a backup's.
pub(crate) fn keep_bytes(
    old: &Path,
    part: &str,
    ending: &str,
    bytes: &[u8],
) -> Result<PathBuf, Trouble> {
    let folder = old.parent().expect("a file is in a folder");
    let keep = || {
        let mut new = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        new.write_all(bytes)?;
        dress_like(&fs::metadata(old)?, new.as_file())?;
        new.as_file().sync_all()?;
        let name = keep(new.path(), &beside(old, part), ending)?;
        sync(folder)?;
        Ok(name)
    };
    keep().map_err(|error| Trouble::writing(folder, &error))
}

fn copy(old: &Path, name: &Path) -> io::Result<()> {
    let folder = old.parent().expect("a file is in a folder");
    let copy = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    fs::copy(old, copy.path())?;
    copy.as_file().sync_all()?;
    copy.persist_noclobber(name)?;
    Ok(())
}

fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{mem, os::unix::fs::PermissionsExt as _};
    use tempfile::{TempDir, tempdir};

    const OLD: &[u8] = b"the old file";
    const NEW: &[u8] = b"the new one";

    fn folder() -> (TempDir, PathBuf) {
        let folder = tempdir().unwrap();
        let file = folder.path().join("s.jsonl");
        fs::write(&file, OLD).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        (folder, file)
    }

    fn contents(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
        let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let named = files.map(|file| {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let name = if name.starts_with(UNFINISHED) { UNFINISHED.to_owned() } else { name };
            (name, fs::read(&file).unwrap())
        });
        let mut named: Vec<_> = named.collect();
        named.sort();
        named
    }

    #[test]
    fn a_crash_after_any_step_leaves_the_old_file_or_the_new_one_whole() {
        let own = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_owned());
        let (old, backup) = (own("s.jsonl", OLD), own("s.jsonl.bak-1", OLD));
        let unfinished = |bytes| own(UNFINISHED, bytes);

        // In the middle of writing, and at its end: forgetting is what a crash does to a value.
        let (folder, file) = folder();
        let source = File::open(&file).unwrap();
        let mut half = tempfile::Builder::new();
        let mut half = half.prefix(UNFINISHED).tempfile_in(folder.path()).unwrap();
        half.write_all(&NEW[..3]).unwrap();
        mem::forget(half);
        assert_eq!(contents(&folder), [unfinished(&NEW[..3]), old.clone()]);
        mem::forget(Staged::new(&source, NEW).unwrap());
        assert_eq!(contents(&folder), [unfinished(&NEW[..3]), unfinished(NEW), old.clone()]);

        let (folder, file) = self::folder();
        let source = File::open(&file).unwrap();
        let stamp = source.stamp().unwrap();
        let staged = Staged::new(&source, NEW).unwrap();
        mem::forget(staged.back_up(stamp, ".bak-1").unwrap());
        assert_eq!(contents(&folder), [unfinished(NEW), old, backup.clone()]);

        let (folder, file) = self::folder();
        let source = File::open(&file).unwrap();
        let stamp = source.stamp().unwrap();
        replace(&source, stamp, ".bak-1", NEW).unwrap();
        assert_eq!(contents(&folder), [own("s.jsonl", NEW), backup]);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_changed_meanwhile_is_left_alone() {
        type Change = fn(&Path);
        let changes: [Change; 3] = [
            |file| fs::write(file, [OLD, b"and a line"].concat()).unwrap(),
            // As long, and as old as before.
            |file| {
                let found = fs::metadata(file).unwrap();
                fs::write(file, b"THE OLD FILE").unwrap();
                let file = fs::File::options().write(true).open(file).unwrap();
                file.set_modified(found.modified().unwrap()).unwrap();
            },
            |file| {
                fs::rename(file, file.with_extension("moved")).unwrap();
                fs::write(file, OLD).unwrap();
            },
        ];
        for change in changes {
            let (folder, file) = folder();
            let source = File::open(&file).unwrap();
            let stamp = source.stamp().unwrap();
            change(&file);
            let theirs = contents(&folder);
            let trouble = replace(&source, stamp, ".bak-1", NEW).unwrap_err();
            assert!(trouble.what.starts_with("was changed by another program"), "{trouble}");
            assert_eq!(contents(&folder), theirs);
        }
    }

    #[test]
    fn a_writer_in_the_moment_of_the_exchange_finds_its_bytes_in_the_backup() {
        let (folder, file) = folder();
        let source = File::open(&file).unwrap();
        let stamp = source.stamp().unwrap();
        let backed_up = Staged::new(&source, NEW).unwrap().back_up(stamp, ".bak-1").unwrap();
        let mut writer = fs::File::options().append(true).open(&file).unwrap();
        writer.write_all(b"late").unwrap();
        let trouble = backed_up.exchange().unwrap_err();
        assert!(trouble.help.ends_with("s.jsonl.bak-1"), "{}", trouble.help);
        let late = ("s.jsonl.bak-1".to_owned(), [OLD, b"late"].concat());
        assert_eq!(contents(&folder), [("s.jsonl".to_owned(), NEW.to_owned()), late]);
    }

    #[test]
    fn an_earlier_backup_stays() {
        let (folder, file) = folder();
        for number in 0..3 {
            let source = File::open(&file).unwrap();
            let stamp = source.stamp().unwrap();
            replace(&source, stamp, ".bak-1", number.to_string().as_bytes()).unwrap();
        }
        let names: Vec<_> = contents(&folder).into_iter().collect();
        let own = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_owned());
        assert_eq!(
            names,
            [
                own("s.jsonl", b"2"),
                own("s.jsonl.bak-1", OLD),
                own("s.jsonl.bak-1-2", b"0"),
                own("s.jsonl.bak-1-3", b"1"),
            ]
        );
    }

    #[test]
    fn a_file_of_its_own_takes_no_name_that_is_taken() {
        let (folder, file) = folder();
        for (number, name) in [(1, "s.jsonl.a.bak-1"), (2, "s.jsonl.a.bak-1-2")] {
            let kept = keep_bytes(&file, ".a", ".bak-1", &[b'0' + number]).unwrap();
            assert_eq!(kept, folder.path().join(name));
            assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o640);
        }
        assert_eq!(
            contents(&folder)[1..],
            [
                ("s.jsonl.a.bak-1".to_owned(), b"1".to_vec()),
                ("s.jsonl.a.bak-1-2".to_owned(), b"2".to_vec()),
            ]
        );
    }

    #[test]
    fn without_links_the_backup_is_a_copy() {
        let (folder, file) = folder();
        copy(&file, &folder.path().join("s.jsonl.bak-1")).unwrap();
        assert!(copy(&file, &folder.path().join("s.jsonl.bak-1")).is_err(), "stays");
        assert_eq!(contents(&folder)[1].1, OLD);
        assert_eq!(contents(&folder).len(), 2);
    }
}
