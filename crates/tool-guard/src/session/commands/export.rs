//! `tool-guard session export`: prints a session.
use crate::{
    files::CliError,
    session::{
        each::Outcome,
        source::Source,
        target::Target,
        verdict::{Failure, Verdict},
    },
    terminal::print,
};
use serde::Serialize;

/// It was printed.
#[derive(Debug, Serialize)]
pub(crate) struct Exported;

/// Prints a session: nothing else is said of it.
pub(crate) fn export(target: &Target) -> Result<Exported, Failure> {
    let content = Source::open(target)?.content()?;
    print(content.bytes()).map_err(|error| {
        CliError::new(format!("cannot be printed: {error}"), "look at where the output goes")
    })?;
    Ok(Exported)
}

impl Outcome for Exported {
    fn verdict(&self) -> Verdict {
        Verdict::Clean
    }

    fn show(&self, _: &Target, _: &mut String) {}

    fn next(&self, _: &Target) -> Option<String> {
        None
    }
}
