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

/// Prints a session: nothing else is said of it.
pub(crate) fn export(target: &Target) -> Result<(), Failure> {
    let content = Source::open(target)?.content()?;
    print(content.bytes()).map_err(|error| {
        CliError::new(format!("cannot be printed: {error}"), "look at where the output goes")
    })?;
    Ok(())
}

/// It was printed.
impl Outcome for () {
    fn verdict(&self) -> Verdict {
        Verdict::Clean
    }

    fn show(&self, _: &Target, _: &mut String) {}

    fn next(&self, _: &Target) -> Option<String> {
        None
    }
}
