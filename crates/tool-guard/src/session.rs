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
    each::{Scope, each},
    options::{One, Paths},
    target::Which,
};
use std::process::ExitCode;

/// Runs the command.
pub(crate) fn run(command: &Command) -> ExitCode {
    let verdict = match command {
        Command::Check { paths, strict, verbose } => {
            let scope = Scope { is_check: true, verbose: *verbose, ..all(paths) };
            each(scope, |target| check::check(target, *strict))
        }
        Command::Repair { paths, how, write, force, extract } => each(all(paths), |target| {
            repair::repair(target, *how, *write, *force, extract.as_deref())
        }),
        Command::Diff { paths, how } => each(all(paths), |target| diff::diff(target, *how)),
        Command::Export { file, session } => {
            let file = std::slice::from_ref(file);
            each(Scope::of(file, session.as_ref(), Which::One, false), export::export)
        }
        Command::Checkpoints { one, create, note } => {
            each(self::one(one), |it| checkpoints::checkpoints(it, *create, note.as_ref()))
        }
        Command::Rollback { one, to, write } => {
            each(self::one(one), |target| rollback::rollback(target, to.to.as_deref(), *write))
        }
        Command::Reset { one, archive, write } => {
            each(self::one(one), |target| reset::reset(target, *archive, *write))
        }
    };
    verdict.into()
}

fn all(paths: &Paths) -> Scope<'_> {
    Scope::of(&paths.paths, paths.session.as_ref(), Which::All, paths.json)
}

fn one(one: &One) -> Scope<'_> {
    Scope::of(std::slice::from_ref(&one.file), one.session.as_ref(), Which::One, one.json)
}
