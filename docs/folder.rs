//! Folders outside of this workspace, for cargo to work in.
use std::{
    env, fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

/// The repository.
pub(crate) fn repository() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
}

/// An empty folder for this purpose: the same one each time, so that a second run builds little, and not below
/// this workspace, which cargo would take for its own.
pub(crate) fn emptied(purpose: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (repository(), purpose).hash(&mut hasher);
    let folder = env::temp_dir().join(format!("tool-reliability-{:x}", hasher.finish()));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Where this workspace builds; crates that were built there are not built again.
pub(crate) fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}
