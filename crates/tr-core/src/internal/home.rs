//! The home folder, in paths of configurations.
use std::{
    env,
    path::{Path, PathBuf},
};

/// The home folder, if the environment names one.
pub fn home() -> Option<PathBuf> {
    env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// A path of a configuration, in which `~/` is the home folder.
#[must_use]
pub fn at_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}
