//! The command line of `tool-guard turn`.
use clap::Args;
use std::{ffi::OsString, path::PathBuf};

/// Runs a plan of tool calls against the MCP server COMMAND.
///
/// Ends with 0 if every call has a result, with 3 if something is missing that the turn can do
/// without, with 4 if something is missing of which you have to know, with 2 if the plan or the
/// catalogue cannot be used, and with 1 if the server cannot.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The plan, as JSON
    pub(crate) plan: PathBuf,

    /// What is known of the server's tools, as TOML or JSON; it beats what the server says itself
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,

    /// Print the trace as JSON lines instead of the waterfall
    #[arg(long)]
    pub(crate) json: bool,

    /// Write what the tools gave back there, as JSON by the calls' names
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,

    /// The MCP server and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
