//! `tool-guard config`: checks a configuration, shows what it amounts to, and prints its schema.
mod effective;
mod toml_text;

use self::effective::{Door, Effective};
use crate::{
    engine::{
        failure,
        options::Overrides,
        setup::{name_of, read_config, source},
    },
    terminal::end_with,
};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tool_reliability::{
    Environment, ToolStack,
    config::{Config, variables},
};
use tr_config::schemas;
use tr_core::{printable, printable_lines};

/// The exit codes, for the help.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  the configuration is good
  1  it could not be read, or the result could not be written
  2  the configuration, or a variable, has mistakes: all of them are on standard error";

const MISTAKES: u8 = 2;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Report all mistakes of FILE and of the variables, with their lines
    Check {
        /// The configuration, as TOML or JSON; without it only the variables are checked
        file: Option<PathBuf>,
    },
    /// Print every setting with its default, as TOML that can be used as a configuration, and where each
    /// comes from. Secrets are hidden
    Show(Box<Show>),
    /// Print the JSON Schema of configurations
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The configuration, as TOML or JSON
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Whose defaults and options apply
    #[arg(long = "for", value_enum, default_value_t = Door::Mcp, value_name = "WHAT")]
    door: Door,

    #[command(flatten)]
    overrides: Overrides,
}

/// Runs the subcommand.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check { file } => check(file.as_deref()),
        Command::Show(show) => self::show(*show),
        Command::Schema => end_with(serde_json::to_string_pretty(&schemas::config())? + "\n"),
    }
}

/// The configuration; `None` if it has mistakes, which are on standard error then.
fn read(file: Option<&Path>) -> anyhow::Result<Option<Config>> {
    if let Some(file) = file {
        // A file that cannot be read has no mistakes.
        std::fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let mut faults = Environment::faults(|name| env::var(name).ok());
    let config = match read_config(file, variables()) {
        Ok(config) => {
            // What no shape can say.
            if let Err(error) = ToolStack::builder().config(&config).build() {
                faults.push(format!("{} cannot be used: {error}", name_of(file)));
            }
            Some(config)
        }
        Err(error) => {
            faults.push(failure::in_full(&*error));
            None
        }
    };
    for fault in &faults {
        eprintln!("tool-guard: {}", printable_lines(fault));
    }
    Ok(config.filter(|_| faults.is_empty()))
}

fn check(file: Option<&Path>) -> anyhow::Result<ExitCode> {
    let Some(config) = read(file)? else { return Ok(ExitCode::from(MISTAKES)) };
    if config.sessions.is_some() {
        eprintln!(
            "tool-guard: note: [sessions] has no effect in tool-guard mcp and turn: they keep no sessions"
        );
    }
    if config.silent_failures.is_some() {
        eprintln!(
            "tool-guard: note: silent_failures has no effect over MCP: there `isError` marks a failure"
        );
    }
    let tools = match config.catalog.len() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    end_with(format!("{}: no mistakes, {tools}\n", printable(&name_of(file))))
}

fn show(show: Show) -> anyhow::Result<ExitCode> {
    let Show { config, door, overrides } = show;
    if read(config.as_deref())?.is_none() {
        return Ok(ExitCode::from(MISTAKES));
    }
    let (text, language) = source(config.as_deref())?;
    let settings = tr_config::settings::settings(&text, language, variables())?;
    let effective = Effective::new(settings, overrides.settings(), door);
    let switches = Environment::from_env();
    end_with(toml_text::write(&effective, &name_of(config.as_deref()), door, switches))
}

#[cfg(test)]
mod tests;
