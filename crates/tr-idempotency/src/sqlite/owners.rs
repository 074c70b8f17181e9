//! Which of the processes that share a file are still alive.
//!
//! Each process holds an operating system lock on a file of its own, whose name is in the records
//! of its claims. The system releases the lock when the process ends, however it ends. A claim
//! whose file is missing or not locked has no owner, whatever its lease says.
use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a file may exist without a lock, since its process locks it after creating it.
const NEW: Duration = Duration::from_secs(60);

/// This process among those that share a file.
#[derive(Debug)]
pub(super) struct Owners {
    folder: PathBuf,
    /// The owner in the records of this process's claims.
    pub(super) own: i64,
    /// Locked as long as this value lives; `None` if this process makes no claims.
    lock: Option<File>,
}

/// The owner of a process that makes no claims.
const NO_OWNER: i64 = -1;

impl Owners {
    /// Joins the processes of this folder, which is created if it is missing. Removes the files of
    /// killed processes.
    pub(super) fn join(folder: PathBuf) -> io::Result<Self> {
        make(&folder)?;
        loop {
            let own = (RandomState::new().hash_one("owner") >> 1).cast_signed();
            let lock = match new(&path(&folder, own)) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            lock.lock()?;
            clean(&folder, &lock);
            return Ok(Self { folder, own, lock: Some(lock) });
        }
    }

    /// Reads the processes of this folder without joining them or writing.
    pub(super) const fn watch(folder: PathBuf) -> Self {
        Self { folder, own: NO_OWNER, lock: None }
    }

    /// Whether this process has certainly ended. If that cannot be determined, its lease decides.
    pub(super) fn is_dead(&self, owner: i64) -> bool {
        owner != self.own && is_free(&path(&self.folder, owner))
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // If it cannot be removed, the next process removes it.
            let _ = fs::remove_file(path(&self.folder, self.own));
        }
    }
}

fn path(folder: &Path, owner: i64) -> PathBuf {
    folder.join(format!("{owner:016x}"))
}

fn is_free(path: &Path) -> bool {
    match File::open(path).map(|file| file.try_lock_shared()) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes the files of processes that have ended, at the start of a process.
fn clean(folder: &Path, begun: &File) {
    let age = |path: &Path| {
        let then = path.metadata()?.modified()?;
        Ok::<_, io::Error>(begun.metadata()?.modified()?.duration_since(then).unwrap_or_default())
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
            name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        if is_ours && age(&path).is_ok_and(|age| age > NEW) && is_free(&path) {
            let _ = fs::remove_file(path);
        }
    }
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_is_known_and_who_lives_is() {
        let folder = std::env::temp_dir().join(format!("tr-owners-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let (one, other) =
            (Owners::join(folder.clone()).unwrap(), Owners::join(folder.clone()).unwrap());
        assert!(!one.is_dead(one.own) && !one.is_dead(other.own) && !other.is_dead(one.own));

        // As after a kill: the file without its lock.
        let killed = path(&folder, 7);
        drop(new(&killed).unwrap());
        assert!(one.is_dead(7));
        let old = File::open(&killed).unwrap().metadata().unwrap().modified().unwrap() - 2 * NEW;
        File::options().write(true).open(&killed).unwrap().set_modified(old).unwrap();
        let third = Owners::join(folder.clone()).unwrap();
        assert!(!killed.exists() && third.is_dead(7));

        let gone = other.own;
        drop(other);
        assert!(one.is_dead(gone));
        drop((one, third));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(folder).unwrap();
    }
}
