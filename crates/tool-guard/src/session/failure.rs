//! Why a file has no result, or cannot be used, and what to do about it.
use super::show::{DIM, WARN};
use serde::Serialize;
use std::{
    fmt, fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};
use tr_core::printable;

/// Why a file has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is no session; for a file found in a folder that is no error.
    NoSession(String),
    /// It is a session that cannot be judged.
    NotJudged(NotJudged),
    /// It may be a session, but cannot be read or changed.
    CliError(CliError),
}

/// Why a session is not judged. It is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NotJudged {
    pub(crate) reason: String,
    /// The program that wrote it, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<&'static str>,
    pub(crate) help: String,
}

impl NotJudged {
    /// The last answer came from an API whose rules are not known.
    pub(crate) fn of_unknown_api(api: &str) -> Self {
        Self {
            reason: format!(
                "its last answer came by the API {}, whose rules are not known here",
                printable(api)
            ),
            agent: None,
            help: "it is left as it is; with an answer of a model whose API is known behind it, it is \
                   judged by the rules of that"
                .into(),
        }
    }
}

impl From<CliError> for Failure {
    fn from(cli_error: CliError) -> Self {
        Self::CliError(cli_error)
    }
}

/// For display, on separate lines.
impl fmt::Display for NotJudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, help) = (printable(&self.reason), printable(&self.help));
        writeln!(f, "  {WARN}not judged:{WARN:#} {reason}\n  {DIM}→ {help}{DIM:#}")
    }
}

impl From<NotJudged> for Failure {
    fn from(why: NotJudged) -> Self {
        Self::NotJudged(why)
    }
}

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
        let what = format!("cannot write in {shown}: {error}; the file is as it was");
        Self::new(what, why_not_written(folder, error))
    }
}

/// Advice for a failed write in a folder.
fn why_not_written(folder: &Path, error: &io::Error) -> String {
    let shown = folder.display();
    match error.kind() {
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
        io::ErrorKind::NotFound => format!("{shown} is gone: look where the agent keeps it now"),
        _ => "copy the file elsewhere and repair the copy".into(),
    }
}
