//! `tool-guard turn`: runs a plan of tool calls against an MCP server, through the whole stack.
//!
//! This is the command line, and `run` the command; `client` is the MCP client and a tower
//! service, `keys` gives the calls their idempotency keys.
mod client;
mod keys;
mod run;

pub(crate) use self::{
    client::{Client, INITIALIZED, hello},
    keys::Keys,
    run::run,
};

use crate::engine::recording::Recording;
use clap::{Args, builder::NonEmptyStringValueParser};
use std::{ffi::OsString, path::PathBuf};

/// The exit codes, for the help.
const EXIT_CODES: &str = "\
Exit codes:
  0  every call has a result
  1  the server cannot be used, or calls cannot be recorded
  2  the plan, the configuration, the catalog or a variable cannot be used; no tool was called
  3  a result is missing that the turn can do without
  4  a required result is missing, or calls that change something may have run.
     With the same --run, a repeat of the plan makes no call again that ended; without it
     only calls with an idempotency_key are recognized, and all others run again";

/// Runs a plan of tool calls against the MCP server COMMAND.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Options {
    /// The plan, as JSON
    plan: PathBuf,

    /// The stack's configuration, as TOML or JSON, as for `tool-guard mcp`; options on the command line
    /// and variables override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The catalog of the server's tools, as TOML or JSON; it overrides the server's own list
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,

    /// Print the trace as JSON lines instead of the waterfall
    #[arg(long)]
    json: bool,

    /// Write the tools' results to FILE, as JSON by the calls' names
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,

    /// Name this run of the plan: a repeat under the same name answers each call that ended from its
    /// record. Without it only calls with an idempotency_key are recorded
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    run: Option<String>,

    #[command(flatten)]
    recording: Recording,

    /// The MCP server's command; everything after its name belongs to it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}
