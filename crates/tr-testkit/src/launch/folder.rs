//! The folder of a server.

use super::{StartError, next};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
};

/// A folder that is removed on drop.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty one among the system's temporary files.
    pub(crate) fn new(kind: &str) -> Result<Self, StartError> {
        loop {
            let folder = env::temp_dir().join(format!("tr-{kind}-{}-{}", process::id(), next()));
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(StartError::folder(&folder, &error)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    #[cfg(feature = "redis")]
    pub(crate) fn empty(&self) -> Result<(), StartError> {
        let anew = fs::remove_dir_all(&self.0).and_then(|()| fs::create_dir(&self.0));
        anew.map_err(|error| StartError::folder(&self.0, &error))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
