//! An open folder: its files are opened, created and renamed through its descriptor, so that
//! another folder, link or pipe cannot replace them meanwhile.
use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RenameFlags, fstat, linkat, open, openat, renameat, renameat_with,
        statat, unlinkat,
    },
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read as _, Seek as _, Write as _},
    os::{fd::OwnedFd, unix::fs::DirBuilderExt as _},
    path::{Path, PathBuf},
};

/// The prefix of temporary files. A crash may leave one behind.
pub(crate) const UNFINISHED: &str = ".tool-guard-";

/// The flags for opening a folder: its files can be opened even if it cannot be listed.
#[cfg(target_os = "linux")]
const HOLD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const HOLD: OFlags = OFlags::DIRECTORY;

/// Opening never blocks on another program, and descriptors are not inherited.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    held: fs::File,
    pub(crate) path: PathBuf,
}

/// A new file with a temporary name, which is removed on drop.
#[derive(Debug)]
pub(crate) struct Temporary<'f> {
    folder: &'f Folder,
    /// Its temporary name.
    pub(crate) name: OsString,
    pub(crate) file: fs::File,
}

impl Folder {
    /// Opens the folder of `file`; returns the file's name in it.
    pub(crate) fn of(file: &Path) -> io::Result<(Self, OsString)> {
        let name = file.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let path = match file.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let held = open(path, HOLD | OFlags::CLOEXEC, Mode::empty())?;
        Ok((Self { held: held.into(), path: path.into() }, name.into()))
    }

    /// Opens a regular file. Does not follow a link or wait for a pipe: either is an error of the
    /// kind `InvalidInput`. With `CREATE`, only the user can access a new file.
    pub(crate) fn open_file(&self, name: &OsStr, flags: OFlags) -> io::Result<fs::File> {
        let flags = flags | ALWAYS | OFlags::NOFOLLOW;
        match openat(&self.held, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(open) => regular(open),
            Err(Errno::LOOP) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "is a link: name the file itself"))
            }
            Err(Errno::NXIO) => Err(not_regular()),
            Err(error) => Err(error.into()),
        }
    }

    /// The folder, opened so that it can be listed.
    pub(crate) fn listed(&self) -> io::Result<fs::File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(&self.held, ".", flags, Mode::empty())?.into())
    }

    /// Its owner and permissions.
    pub(crate) fn metadata(&self) -> io::Result<fs::Metadata> {
        self.held.metadata()
    }

    /// What `name` is, without following a link; `None` if there is nothing.
    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Option<rustix::fs::Stat>> {
        match statat(&self.held, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether `name` is the name of the open file.
    pub(crate) fn has(&self, name: &OsStr, file: &fs::File) -> bool {
        let here = statat(&self.held, name, AtFlags::SYMLINK_NOFOLLOW);
        let same = |here: rustix::fs::Stat| {
            fstat(file).is_ok_and(|it| (it.st_dev, it.st_ino) == (here.st_dev, here.st_ino))
        };
        here.is_ok_and(same)
    }

    /// Adds a hard link to the open file named `name`; never replaces an existing name.
    pub(crate) fn link(&self, file: &fs::File, name: &OsStr, second: &OsStr) -> io::Result<()> {
        linkat(&self.held, name, &self.held, second, AtFlags::empty())?;
        if self.has(second, file) {
            return Ok(());
        }
        self.remove(second);
        Err(exchanged(name))
    }

    /// Appends to the file with this name; `true`.
    pub(crate) fn append(&self, name: &OsStr, bytes: &[u8]) -> io::Result<bool> {
        let mut file = self.open_file(name, OFlags::WRONLY | OFlags::APPEND)?;
        file.write_all(bytes)?;
        file.sync_all().map(|()| true)
    }

    /// Removes a name.
    pub(crate) fn remove(&self, name: &OsStr) {
        let _ = unlinkat(&self.held, name, AtFlags::empty());
    }

    /// Syncs the folder's names to disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.listed()?.sync_all()
    }

    /// Creates an empty file that only the user can access.
    pub(crate) fn temporary(&self) -> io::Result<Temporary<'_>> {
        loop {
            let name = OsString::from(format!("{UNFINISHED}{:016x}", fastrand::u64(..)));
            match self.open_file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
                Ok(file) => return Ok(Temporary { folder: self, name, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Temporary<'_> {
    /// Gives it the name `name`, which must be free.
    pub(crate) fn give_name(&self, name: &OsStr) -> io::Result<()> {
        let Folder { held, .. } = self.folder;
        match self.folder.link(&self.file, &self.name, name) {
            // On file systems without hard links.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                renameat_with(held, &self.name, held, name, RenameFlags::NOREPLACE)?;
                if self.folder.has(name, &self.file) {
                    return Ok(());
                }
                self.folder.remove(name);
                Err(exchanged(name))
            }
            placed => placed,
        }
    }

    /// Exchanges its name with the file with the name `name`. On file systems without that it
    /// replaces this file, and returns `false`.
    pub(crate) fn exchange(&self, name: &OsStr) -> io::Result<bool> {
        let Self { folder: Folder { held, .. }, name: own, file } = self;
        if !self.folder.has(own, file) {
            return Err(exchanged(own));
        }
        match self.exchange_back(name) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                Ok(renameat(held, own, held, name).map(|()| false)?)
            }
            done => Ok(done.map(|()| true)?),
        }
    }

    /// Exchanges the files of the two names, whatever these are.
    pub(crate) fn exchange_back(&self, name: &OsStr) -> Result<(), Errno> {
        let held = &self.folder.held;
        renameat_with(held, &self.name, held, name, RenameFlags::EXCHANGE)
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&self.file).rewind()?;
        (&self.file).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.folder.has(&self.name, &self.file) {
            self.folder.remove(&self.name);
        }
    }
}

/// Opens a regular file for reading; follows links, and does not wait for a pipe.
pub(crate) fn open_regular(path: &Path) -> io::Result<fs::File> {
    regular(open(path, OFlags::RDONLY | ALWAYS, Mode::empty())?)
}

/// Makes the folder of a file, and those above it, for this user alone.
pub(crate) fn make_folder(file: &Path) -> io::Result<()> {
    match file.parent().filter(|folder| *folder != Path::new("")) {
        Some(folder) => fs::DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

/// `FILE` with `ending` appended to its name.
pub(crate) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn regular(open: OwnedFd) -> io::Result<fs::File> {
    let file = fs::File::from(open);
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file")
}

fn exchanged(name: &OsStr) -> io::Error {
    io::Error::other(format!("another program has exchanged {} meanwhile", name.display()))
}
