//! Why a file cannot be used, and what to do about it.
use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

/// Why a file cannot be used, and what to do about it. The file is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(crate) struct CliError {
    pub(crate) what: String,
    pub(crate) help: String,
}

impl CliError {
    pub(crate) fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into() }
    }

    /// `path` cannot be read.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Self {
        let help = match error.kind() {
            io::ErrorKind::NotFound => "look at the path: agents keep sessions under their own \
                folder, such as ~/.claude/projects or ~/.openclaw/agents"
                .to_owned(),
            io::ErrorKind::PermissionDenied => {
                format!("run as the user that owns it: ls -l {}", path.display())
            }
            _ => {
                "the disk or the network share may be the cause: copy the file elsewhere, and try \
                  the copy"
                    .to_owned()
            }
        };
        Self::new(format!("cannot be read: {error}"), help)
    }

    /// No file can be written in `folder`.
    pub(crate) fn writing(folder: &Path, error: &io::Error) -> Self {
        let shown = folder.display();
        let help = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space: the disk has to hold the old file and the new one".into()
            }
            io::ErrorKind::ReadOnlyFilesystem => format!(
                "{shown} is on a file system that is mounted read-only: copy the file elsewhere and \
                 repair the copy, or mount it for writing"
            ),
            io::ErrorKind::PermissionDenied => match fs::metadata(folder) {
                // The folder's mode permits writing, so a file's owner or an attribute prevents it.
                Ok(found) if found.permissions().mode() & 0o222 == 0 => format!(
                    "no user may write in {shown}: chmod u+w {shown}, or copy the file elsewhere and \
                     repair the copy"
                ),
                Ok(found) if found.uid() == rustix::process::geteuid().as_raw() => format!(
                    "{shown} is yours, and you may not write in it, or not give the new file the old \
                     one's owner and group: copy the file elsewhere and repair the copy"
                ),
                Ok(found) => format!(
                    "{shown} belongs to the user with the number {}, and you may not write in it, or \
                     not give the new file the old one's owner: run this as that user, or copy the \
                     file elsewhere and repair the copy",
                    found.uid()
                ),
                Err(_) => "run this as the user that owns the folder".into(),
            },
            io::ErrorKind::NotFound => {
                format!("{shown} is gone: look where the agent keeps it now")
            }
            _ => "copy the file elsewhere and repair the copy".into(),
        };
        Self::new(format!("cannot write in {shown}: {error}; the file is as it was"), help)
    }
}
