//! Completions for shells, and manual pages.
use crate::terminal::end_with;
use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;
use std::{path::Path, process::ExitCode};

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell, command: &Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    let known = command.get_subcommands().filter(|it| !it.is_hide_set()).cloned();
    let mut known = Command::new("tool-guard").version("").subcommands(known);
    clap_complete::generate(shell, &mut known, "tool-guard", &mut text);
    end_with(&text)
}

/// Prints or writes the manual.
pub(crate) fn man(folder: Option<&Path>, command: Command) -> anyhow::Result<ExitCode> {
    if let Some(folder) = folder {
        clap_mangen::generate_to(command, folder).with_context(|| {
            format!(
                "cannot write the pages into {}: make the folder, or name another",
                folder.display()
            )
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    end_with(&page)
}
