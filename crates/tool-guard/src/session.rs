//! `tool-guard session`: finds out why a provider refuses an agent's session, and repairs it.
mod agents;
mod balance;
mod change;
mod check;
mod checkpoints;
mod content;
mod database;
mod diff;
mod each;
mod failure;
mod form;
mod json_document;
mod json_lines;
mod kind;
mod messages;
mod options;
mod repair;
mod report;
mod reset;
mod rollback;
mod sidecar;
mod source;
mod stored_session;
mod target;

pub(crate) use self::options::Options;
use self::{
    content::Content,
    each::{Outcome, Verdict, each},
    failure::{Failure, NotJudged},
    options::{Command, One, Paths},
    source::Source,
    target::{Target, Which},
};
use std::process::ExitCode;
use tr_core::{SystemClock, WallClock as _};

/// Runs the command.
pub(crate) fn run(options: &Options) -> ExitCode {
    let now = SystemClock.unix_ms();
    let verdict = match &options.command {
        Command::Check(check) => all(&check.paths, |target| check::check(target, check.strict)),
        Command::Repair(repair) => all(&repair.paths, |target| repair::repair(target, repair, now)),
        Command::Diff(diff) => all(&diff.paths, |target| diff::diff(target, diff.how)),
        Command::Checkpoints(checkpoints) => {
            one(&checkpoints.one, |target| checkpoints::checkpoints(target, checkpoints, now))
        }
        Command::Rollback(rollback) => {
            one(&rollback.one, |target| rollback::rollback(target, rollback, now))
        }
        Command::Reset(reset) => one(&reset.one, |target| reset::reset(target, reset, now)),
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
