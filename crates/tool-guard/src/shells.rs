//! Completions for shells, and manual pages.
use crate::terminal::end_with;
use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;
use std::{fs, path::Path, process::ExitCode};

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell, command: &Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    let known = command.get_subcommands().filter(|it| !it.is_hide_set()).cloned();
    let mut known = Command::new("tool-guard").version("").subcommands(known);
    clap_complete::generate(shell, &mut known, "tool-guard", &mut text);
    if shell == Shell::Bash {
        // clap_complete 4.6 takes the hyphen of the program's name for a subcommand in half of the places.
        let script = String::from_utf8(text)?.replace("tool__subcmd__guard", "tool__guard");
        text = script.into_bytes();
    }
    end_with(&text)
}

/// Prints or writes the manual.
pub(crate) fn man(folder: Option<&Path>, command: Command) -> anyhow::Result<ExitCode> {
    if let Some(folder) = folder {
        let failed = || format!("cannot write the pages into {}", folder.display());
        fs::create_dir_all(folder).with_context(failed)?;
        clap_mangen::generate_to(command, folder).with_context(failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    end_with(&page)
}
