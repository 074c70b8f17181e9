//! A session's file as it was found, and whether it still is so.
use super::{Trouble, writers};
use blake3::Hash;
use std::{
    fs::{self, Metadata, TryLockError},
    io::{self, Seek as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// A session's file, open for reading.
#[derive(Debug)]
pub(crate) struct File {
    /// Where it is, behind all links.
    real: PathBuf,
    open: fs::File,
    found: Box<Metadata>,
}

/// What a file was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    seen: Seen,
    digest: Hash,
}

/// What a look at a file costs nothing to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    device: u64,
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl File {
    /// Opens a file for reading.
    pub(crate) fn open(path: &Path) -> Result<Self, Trouble> {
        let reading = |error| Trouble::reading(path, &error);
        // Before it is opened: a pipe would never answer, and has no path behind its link.
        if !fs::metadata(path).map_err(reading)?.is_file() {
            let help = "give a session's file, or a folder; write what comes through a pipe to a \
                        file first";
            return Err(Trouble::new("is no regular file", help));
        }
        let real = path.canonicalize().map_err(reading)?;
        let open = fs::File::open(&real).map_err(reading)?;
        let found = Box::new(open.metadata().map_err(reading)?);
        Ok(Self { real, open, found })
    }

    /// Opens a file that is to be changed, and keeps other guards from it. Refuses one that
    /// another program is writing.
    pub(crate) fn open_to_change(path: &Path) -> Result<Self, Trouble> {
        let file = Self::open(path)?;
        match file.open.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Trouble::new(
                "another program has locked it, perhaps this one in another window",
                "wait until that has ended, or stop it",
            )),
            // Not every file system has locks; the stamp sees what was changed there too.
            Ok(()) | Err(TryLockError::Error(_)) => {
                writers::refuse_writers(&file.real)?;
                Ok(file)
            }
        }
    }

    /// Where it is, behind all links.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// The folder in which it is.
    pub(crate) fn folder(&self) -> &Path {
        self.real.parent().expect("a file is in a folder")
    }

    /// What was known of it when it was opened.
    pub(crate) fn found(&self) -> &Metadata {
        &self.found
    }

    /// The open file, at its beginning.
    pub(crate) fn rewound(&self) -> Result<&fs::File, Trouble> {
        (&self.open).rewind().map_err(|error| Trouble::reading(&self.real, &error))?;
        Ok(&self.open)
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.found.len()).unwrap_or(0));
        let read = io::Read::read_to_end(&mut self.rewound()?, &mut bytes);
        read.map_err(|error| Trouble::reading(&self.real, &error))?;
        Ok(bytes)
    }

    /// What it is now, whole.
    pub(crate) fn stamp(&self) -> Result<Stamp, Trouble> {
        let mut hasher = blake3::Hasher::new();
        let seen = self.seen()?;
        io::copy(&mut self.rewound()?, &mut hasher)
            .map_err(|error| Trouble::reading(&self.real, &error))?;
        Ok(Stamp { seen, digest: hasher.finalize() })
    }

    /// Refuses if it is not what `before` says any more, or something else stands in its place.
    pub(crate) fn refuse_changes(&self, before: &Stamp) -> Result<(), Trouble> {
        let here = fs::metadata(&self.real).map(|found| Seen::of(&found));
        if here.is_ok_and(|here| here == before.seen) && self.stamp()? == *before {
            return Ok(());
        }
        Err(Trouble::new(
            "was changed by another program meanwhile; it is as that program left it",
            "stop the agent first, then do this again",
        ))
    }

    /// Whether the open file was written to since; to be asked once another is in its place.
    pub(crate) fn is_still(&self, before: &Stamp) -> bool {
        self.seen().is_ok_and(|seen| seen == before.seen)
    }

    fn seen(&self) -> Result<Seen, Trouble> {
        let found = self.open.metadata();
        found.map(|found| Seen::of(&found)).map_err(|error| Trouble::reading(&self.real, &error))
    }
}

impl Seen {
    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            len: found.len(),
            changed: (found.mtime(), found.mtime_nsec()),
        }
    }
}
