//! Why a file cannot be used, and what to do about it.
use std::{fmt, io, path::Path};

/// Why a file cannot be used, and what to do about it. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) what: String,
    pub(crate) help: String,
}

impl Trouble {
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

    /// Nothing can be written in `folder`.
    pub(crate) fn writing(folder: &Path, error: &io::Error) -> Self {
        let help = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "make room: the old file and the new one have to fit beside each other"
            }
            _ => "make the folder writable for you, or copy the file elsewhere and mend the copy",
        };
        let folder = folder.display();
        Self::new(format!("cannot write in {folder}: {error}; the file is as it was"), help)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Trouble {}
