//! `tool-guard session`: finds out why a provider refuses an agent's session, and repairs it.
mod commands;
mod database;
mod document;
mod each;
mod edit;
mod openclaw;
mod options;
mod report;
mod sidecar;
mod source;
mod stored;
mod target;
mod verdict;

pub(crate) use self::options::{Command, EXIT_CODES};

use self::{
    commands::{check, checkpoints, diff, export, repair, reset, rollback},
    each::{Outcome, each},
    options::{One, Paths},
    target::{Target, Which},
    verdict::{Failure, Verdict},
};
use std::process::ExitCode;

/// Runs the command.
pub(crate) fn run(command: &Command) -> ExitCode {
    let verdict = match command {
        Command::Check { paths, session, json, strict } => {
            let which = session.as_deref().map_or(Which::All, Which::Named);
            each(paths, which, *json, |target| check::check(target, *strict))
        }
        Command::Repair { paths, how, write, force, extract } => {
            all(paths, |target| repair::repair(target, *how, *write, *force, extract.as_deref()))
        }
        Command::Diff { paths, how } => all(paths, |target| diff::diff(target, *how)),
        Command::Export { file, session } => each(
            std::slice::from_ref(file),
            session.as_deref().map_or(Which::One, Which::Named),
            false,
            export::export,
        ),
        Command::Checkpoints { one, create, note } => {
            self::one(one, |target| checkpoints::checkpoints(target, *create, note.as_ref()))
        }
        Command::Rollback { one, to, write } => {
            self::one(one, |target| rollback::rollback(target, to.to.as_deref(), *write))
        }
        Command::Reset { one, archive, write } => {
            self::one(one, |target| reset::reset(target, *archive, *write))
        }
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
