//! The verdict on a session, or why a file has none.
use crate::{
    files::CliError,
    terminal::{DIM, WARN},
};
use serde::Serialize;
use std::{fmt, process::ExitCode};
use tr_core::printable;
use tr_transcript::CheckpointError;

/// The result for a file, from best to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It is valid, or was repaired.
    #[default]
    Clean,
    /// It is or may be a session, but too little is understood to judge it.
    NotJudged,
    /// Something is wrong, or would be changed.
    Findings,
    /// It cannot be read or changed.
    Unreadable,
}

impl Verdict {
    /// The status in the JSON of a command that changes nothing.
    pub(crate) const fn status(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::NotJudged => "notJudged",
            Self::Findings => "findings",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The command's exit code.
impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(match verdict {
            Verdict::Clean => 0,
            Verdict::Findings => 1,
            Verdict::Unreadable => 2,
            Verdict::NotJudged => 3,
        })
    }
}

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
    /// A session of no known program.
    pub(crate) fn new(reason: impl Into<String>, help: impl Into<String>) -> Self {
        Self { reason: reason.into(), agent: None, help: help.into() }
    }

    /// The last answer came from an API whose rules are not known.
    pub(crate) fn of_unknown_api(api: &str) -> Self {
        let api = printable(api);
        Self::new(
            format!("its last answer came by the API {api}, whose rules are not known here"),
            "it is left as it is; with an answer of a model whose API is known behind it, it is \
             judged by the rules of that",
        )
    }
}

impl From<CheckpointError> for CliError {
    fn from(error: CheckpointError) -> Self {
        Self::new(error.to_string(), "list them: tool-guard session checkpoints")
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
