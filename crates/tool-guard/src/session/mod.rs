//! `tool-guard session`: finds what makes a provider refuse an agent's session, and mends it.
mod check;
mod checkpoints;
mod content;
mod diff;
mod each;
mod form;
mod kind;
mod lines;
mod options;
mod progress;
mod repair;
mod report;
mod reset;
mod rollback;
mod show;
mod sidecar;
mod source;
mod spread;
mod swap;
mod trouble;
mod walk;
mod whole;
mod writers;

pub(crate) use self::options::Options;
use self::{
    content::Content,
    each::{Failure, Outcome, Verdict, each},
    options::Command,
    source::{Source, Stamp},
    trouble::Trouble,
};
use std::{process::ExitCode, slice};
use tr_core::{SystemClock, WallClock as _, rfc3339};

/// Runs the command.
pub(crate) fn run(options: &Options) -> ExitCode {
    let now = SystemClock.unix_ms();
    let verdict = match &options.command {
        Command::Check(check) => each(&check.paths.paths, check.paths.json, check::check),
        Command::Repair(repair) => {
            each(&repair.paths.paths, repair.paths.json, |file| repair::repair(file, repair, now))
        }
        Command::Diff(diff) => {
            each(&diff.paths.paths, diff.paths.json, |file| diff::diff(file, diff.how))
        }
        Command::Checkpoints(checkpoints) => {
            let files = slice::from_ref(&checkpoints.file);
            each(files, checkpoints.json, |file| checkpoints::checkpoints(file, checkpoints, now))
        }
        Command::Rollback(rollback) => {
            let files = slice::from_ref(&rollback.file);
            each(files, rollback.json, |file| rollback::rollback(file, rollback, now))
        }
        Command::Reset(reset) => {
            let files = slice::from_ref(&reset.file);
            each(files, reset.json, |file| reset::reset(file, reset, now))
        }
    };
    verdict.into()
}

/// `mark` and the time, as a file's ending: `.bak-20260221T112000Z`.
fn ending(mark: &str, now: u64) -> String {
    let time = rfc3339(now).to_string();
    let seconds = time.split('.').next().unwrap_or_default();
    format!(".{mark}-{}Z", seconds.replace(['-', ':'], ""))
}
