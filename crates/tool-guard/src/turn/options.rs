//! The command line of `tool-guard turn`.
use crate::mcp::recording::RecordOptions;
use clap::{Args, builder::NonEmptyStringValueParser};
use std::{ffi::OsString, path::PathBuf};

/// What it ends with.
const EXIT_CODES: &str = "\
Exit codes:
  0  every call has a result
  1  the server cannot be used, or calls cannot be recorded
  2  the plan, the configuration, the catalogue or a variable cannot be used; no tool was called
  3  something is missing that the turn can do without
  4  something is missing of which you have to know; calls may have run all the same.
     Run again with the same --run, the plan makes no call again that ended; without it
     only calls with an idempotency_key are recognised, and all others run again";

/// Runs a plan of tool calls against the MCP server COMMAND.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Options {
    /// The plan, as JSON
    pub(crate) plan: PathBuf,

    /// How the stack is set up, as TOML or JSON, as for `tool-guard mcp`; options given here and
    /// variables beat it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// What is known of the server's tools, as TOML or JSON; it beats what the server says itself
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,

    /// Print the trace as JSON lines instead of the waterfall
    #[arg(long)]
    pub(crate) json: bool,

    /// Write what the tools gave back there, as JSON by the calls' names
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,

    /// Names this run of the plan: run again under the same name, each call that ended is answered from
    /// its record. Without it only calls with an idempotency_key are recorded
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) run: Option<String>,

    #[command(flatten)]
    pub(crate) recording: RecordOptions,

    /// The MCP server and its arguments; what follows its name belongs to it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
