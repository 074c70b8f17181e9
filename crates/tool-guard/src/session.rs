//! `tool-guard session`: finds out why a provider refuses an agent's session, and repairs it.
mod commands;
mod database;
mod document;
mod each;
mod options;
mod report;
mod sidecar;
mod source;
mod target;
mod verdict;

pub(crate) use self::options::{Command, EXIT_CODES};

use self::{
    commands::{check, checkpoints, diff, repair, reset, rollback},
    each::{Outcome, each},
    options::{One, Paths},
    target::{Target, Which},
    verdict::{Failure, Verdict},
};
use std::process::ExitCode;

/// Runs the command.
pub(crate) fn run(command: &Command) -> ExitCode {
    let verdict = match command {
        Command::Check(check) => all(&check.paths, |target| check::check(target, check.strict)),
        Command::Repair(repair) => all(&repair.paths, |target| repair::repair(target, repair)),
        Command::Diff(diff) => all(&diff.paths, |target| diff::diff(target, diff.how)),
        Command::Checkpoints(checkpoints) => {
            one(&checkpoints.one, |target| checkpoints::checkpoints(target, checkpoints))
        }
        Command::Rollback(rollback) => {
            one(&rollback.one, |target| rollback::rollback(target, rollback))
        }
        Command::Reset(reset) => one(&reset.one, |target| reset::reset(target, reset)),
    };
    verdict.into()
}

fn all<T: Outcome>(paths: &Paths, act: impl FnMut(&Target) -> Result<T, Failure>) -> Verdict {
    let which = paths.session.as_deref().map_or(Which::All, Which::Named);
    each(&paths.paths, which, paths.json, act)
}

fn one<T: Outcome>(one: &One, act: impl FnMut(&Target) -> Result<T, Failure>) -> Verdict {
    let which = one.session.as_deref().map_or(Which::One, Which::Named);
    each(std::slice::from_ref(&one.file), which, one.json, act)
}
