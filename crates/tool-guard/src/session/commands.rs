//! The commands, and the common steps of those that change a session: read, decide, show, and write if requested.
pub(crate) mod check;
pub(crate) mod checkpoints;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod repair;
pub(crate) mod reset;
pub(crate) mod rollback;

use super::{
    document::Document,
    report::About,
    source::Source,
    target::Target,
    verdict::{Failure, Verdict},
};
use crate::terminal::{GOOD, TITLE, WARN, count};
use serde::Serialize;
use std::{fmt::Write as _, os::unix::fs::MetadataExt as _, path::PathBuf};
use tr_core::{SystemClock, WallClock as _, rfc3339};

/// A file name's suffix from `mark` and the time: `.bak-20260221T112000Z`.
fn ending(mark: &str) -> String {
    let time = rfc3339(SystemClock.unix_ms()).to_string();
    let seconds = time.split('.').next().unwrap_or_default();
    format!(".{mark}-{}Z", seconds.replace(['-', ':'], ""))
}

/// The state of a change, the session before it, and what its command says of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change<T> {
    /// Whether there is something to do that is not written yet.
    #[serde(skip)]
    pub(crate) is_planned: bool,
    #[serde(flatten)]
    pub(crate) about: About,
    /// How many other names the old file has (hard links): they keep its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_names: Option<u64>,
    /// The path of the old file, or of the old messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) backup: Option<PathBuf>,
    #[serde(flatten)]
    pub(crate) said: T,
}

/// Applies `decide` to a session's content, and writes the result if that was requested and
/// anything changed; it says the other result of `decide`. The old file's name ends with `mark`.
pub(crate) fn change<T>(
    target: &Target,
    (write, mark): (bool, &str),
    decide: impl FnOnce(&Source, &dyn Document) -> Result<(Option<Box<dyn Document>>, T), Failure>,
) -> Result<Change<T>, Failure> {
    let source = if write { Source::open_to_change(target) } else { Source::open(target) }?;
    let content = source.content()?;
    let (after, said) = decide(&source, &*content)?;
    let after = after.filter(|after| after.bytes() != content.bytes());
    let names = match &source {
        Source::File(file, _) => file.found.nlink(),
        Source::Stored(_) => 1,
    };
    let other_names = names.checked_sub(1).filter(|it| *it > 0 && after.is_some());
    let is_planned = after.is_some() && !write;
    let replace = |after: Box<dyn Document>| source.replace(&*content, &*after, &ending(mark));
    let backup = after.filter(|_| write).map(replace).transpose()?;
    Ok(Change { is_planned, about: content.about(), other_names, backup, said })
}

impl<T> Change<T> {
    /// The command's status, given that of an unchanged session, and of a changed one.
    pub(crate) fn state_name(&self, unchanged: Verdict, done: &'static str) -> &'static str {
        match &self.backup {
            _ if self.is_planned => "planned",
            Some(_) => done,
            None => unchanged.status(),
        }
    }

    /// The command's verdict, given the verdict of the changed session.
    pub(crate) fn verdict_of(&self, left: Verdict) -> Verdict {
        if self.is_planned { Verdict::Findings } else { left }
    }

    /// Describes the state for display: nothing to do, what would be done, or what was done and
    /// where the old file is.
    pub(crate) fn show_state(
        &self,
        target: &Target,
        nothing: &str,
        planned: &str,
        (done, what): (&str, &str),
        out: &mut String,
    ) {
        let _ = match &self.backup {
            Some(backup) => {
                let old = if target.stored.is_some() { "messages are in" } else { "file is" };
                let backup = backup.to_string_lossy();
                let backup = tr_core::printable(&backup);
                writeln!(out, "  {GOOD}{done}{GOOD:#}: {what}; the old {old} {backup}")
            }
            None if self.is_planned => {
                writeln!(out, "  {TITLE}nothing is written yet{TITLE:#}: {planned}")
            }
            None => writeln!(out, "  {nothing}"),
        };
        if let Some(others) = self.other_names {
            let names = count(others, "other name");
            let _ = writeln!(
                out,
                "  {WARN}left with the old content: {names} of it (hard links){WARN:#}"
            );
        }
    }
}
