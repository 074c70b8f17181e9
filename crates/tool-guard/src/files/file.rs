//! An open session file, and detection of changes to it.
use super::{
    error::CliError, folder::Folder, other_programs::refuse_writers, other_users::refuse_others,
};
use crate::terminal::size;
use blake3::Hash;
use rustix::fs::OFlags;
use std::{
    env,
    ffi::OsString,
    fs::{self, Metadata, TryLockError},
    io::{self, Read as _, Seek as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Larger files are not read into memory.
const LARGEST: u64 = 4 << 30;

/// A change takes about so many times the memory of its file.
const MEMORY: u64 = 4;

/// A session file, open for reading, and its open folder.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path with all links resolved.
    pub(crate) real: PathBuf,
    /// The folder that contains it.
    pub(crate) folder: Folder,
    /// Its name in the folder.
    pub(crate) name: OsString,
    pub(crate) open: fs::File,
    /// Its metadata when it was opened.
    pub(crate) found: Box<Metadata>,
}

/// The identity and content of a file at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    changed: (i64, i64),
    digest: Hash,
}

impl File {
    /// Opens a file for reading.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let reading = |error| CliError::reading(path, &error);
        // A pipe has no path behind its link.
        if !fs::metadata(path).map_err(reading)?.is_file() {
            return Err(not_regular());
        }
        let real = path.canonicalize().map_err(reading)?;
        let (folder, name) = Folder::of(&real).map_err(reading)?;
        let open = folder.open_file(&name, OFlags::RDONLY).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => not_regular(),
            _ => reading(error),
        })?;
        let found = Box::new(open.metadata().map_err(reading)?);
        Ok(Self { real, folder, name, open, found })
    }

    /// What comes through standard input, in a file without a name.
    pub(crate) fn of_standard_input() -> Result<Self, CliError> {
        let real = env::temp_dir().join("standard input");
        let copy = || {
            let (folder, name) = Folder::of(&real)?;
            let open = folder.temporary()?.file.try_clone()?;
            io::copy(&mut io::stdin().lock().take(LARGEST + 1), &mut &open)?;
            Ok((folder, name, Box::new(open.metadata()?), open))
        };
        let (folder, name, found, open) =
            copy().map_err(|error| CliError::reading(&real, &error))?;
        let file = Self { real, folder, name, open, found };
        file.refuse_large().map(|()| file)
    }

    /// Opens a file that is to be changed, and locks it against other guards. Refuses a file that
    /// another program is writing, or that another user could replace.
    pub(crate) fn open_to_change(path: &Path) -> Result<Self, CliError> {
        let file = Self::open(path)?;
        file.refuse_large()?;
        refuse_others(&file.folder, &file.found)?;
        match file.open.try_lock() {
            Err(TryLockError::WouldBlock) => Err(CliError::new(
                "another program has locked it, perhaps this one in another window",
                "wait until that has ended, or stop it",
            )),
            // Not every file system has locks; the stamp also detects concurrent changes.
            Ok(()) | Err(TryLockError::Error(_)) => {
                refuse_writers(path, &file.real)?;
                Ok(file)
            }
        }
    }

    /// The open file, at its beginning.
    pub(crate) fn rewound(&self) -> Result<&fs::File, CliError> {
        (&self.open).rewind().map_err(|error| CliError::reading(&self.real, &error))?;
        Ok(&self.open)
    }

    /// All of its bytes. Allocates for the bytes read, not for the claimed length. Refuses a file for which this
    /// process does not get the memory that a change takes: it would be aborted.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, CliError> {
        self.refuse_large()?;
        let wanted = self.found.len().saturating_mul(MEMORY);
        let wanted_here = usize::try_from(wanted).unwrap_or(usize::MAX);
        Vec::<u8>::new().try_reserve_exact(wanted_here).map_err(|_| {
            let what = format!("needs {} of memory, more than this process gets", size(wanted));
            CliError::new(what, "raise the limit (ulimit -v), or take a machine with more memory")
        })?;
        let mut bytes = Vec::new();
        let read = self.rewound()?.take(LARGEST + 1).read_to_end(&mut bytes);
        let read = read.map_err(|error| CliError::reading(&self.real, &error))? as u64;
        if read > LARGEST { Err(too_large(read)) } else { Ok(bytes) }
    }

    fn refuse_large(&self) -> Result<(), CliError> {
        if self.found.len() > LARGEST { Err(too_large(self.found.len())) } else { Ok(()) }
    }

    /// Refuses a sparse file that consists mostly of holes: reading it would take too long.
    pub(crate) fn refuse_holes(&self) -> Result<(), CliError> {
        let (len, written) = (self.found.len(), self.found.blocks().saturating_mul(512));
        if len <= LARGEST || written >= len / 2 {
            return Ok(());
        }
        let what = format!("has {} of data in {}: the rest are holes", size(written), size(len));
        let help = "a crash or a program with a wrong offset leaves such; copy what comes before \
                    the first hole (head -c BYTES FILE > COPY), and check the copy";
        Err(CliError::new(what, help))
    }

    /// The stamp of its current content.
    pub(crate) fn stamp(&self) -> Result<Stamp, CliError> {
        let mut hasher = blake3::Hasher::new();
        let reading = |error| CliError::reading(&self.real, &error);
        let found = self.open.metadata().map_err(reading)?;
        io::copy(&mut self.rewound()?, &mut hasher).map_err(reading)?;
        Ok(Stamp {
            device: found.dev(),
            inode: found.ino(),
            len: found.len(),
            changed: (found.mtime(), found.mtime_nsec()),
            digest: hasher.finalize(),
        })
    }
}

/// Another program has changed the file, and it is in its place.
pub(crate) fn changed() -> CliError {
    CliError::new(
        "was changed by another program meanwhile; it is as that program left it",
        "stop the agent first, then run the command again",
    )
}

fn not_regular() -> CliError {
    let help =
        "give a session's file, or a folder; write what comes through a pipe to a file first";
    CliError::new("is not a regular file", help)
}

fn too_large(length: u64) -> CliError {
    let (length, largest) = (size(length), size(LARGEST));
    let help = "is it a session? If so, split a copy of it at a line, or begin a new session";
    CliError::new(format!("has {length}, and no more than {largest} are held in memory"), help)
}
