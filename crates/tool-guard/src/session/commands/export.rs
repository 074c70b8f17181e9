//! `tool-guard session export`: prints a session.
use crate::{
    files::CliError,
    session::{source::Source, target::Target, verdict::Failure},
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
