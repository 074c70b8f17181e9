//! The command line of `tool-guard decide`.
use crate::{
    engine::{
        operation::Operation,
        options::{
            HttpOptions, JoinAfter, Mode, OnServerExit, Overrides, Restart, Trust, duration,
            line_limit,
        },
    },
    mcp,
};
use clap::Args;
use std::{path::PathBuf, time::Duration};

/// Decides about the calls of a host that runs its tools itself.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What the guard does with calls
    #[arg(long, value_enum, default_value_t = Mode::Enforce)]
    mode: Mode,

    /// The stack's configuration, as TOML or JSON; options on the command line and variables override it.
    /// Read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The catalogue of the host's tools, as TOML or JSON; it overrides what the host says of them. Read
    /// again on SIGHUP
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,

    #[command(flatten)]
    overrides: Overrides,

    /// How long the host waits for a decision; then the call is refused
    #[arg(long, value_parser = duration, value_name = "DURATION", default_value = "10s")]
    pub(crate) decide_within: Duration,

    /// Serve hosts that are several processes, or one process for each event, on a Unix socket at PATH, in
    /// place of standard input and output. If a guard serves it already, the command ends
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,

    /// How long the guard of a socket stays without a connection and without an open call
    #[arg(long, value_parser = duration, value_name = "DURATION", default_value = "30m", requires = "socket")]
    pub(super) idle: Duration,

    /// The longest line that is read, in bytes
    #[arg(long, default_value_t = 64 * 1024 * 1024, value_name = "BYTES", value_parser = line_limit)]
    max_line: usize,

    #[command(flatten)]
    pub(super) operation: Operation,
}

impl Options {
    /// For the guard that is inside: its server is the host.
    pub(crate) fn guard(self) -> mcp::Options {
        mcp::Options {
            mode: self.mode,
            config: self.config,
            operation: self.operation,
            overrides: self.overrides,
            max_timeout: None,
            max_line: self.max_line,
            catalog: self.catalog,
            trust_annotations: Some(Trust::All),
            join_after: JoinAfter(None),
            on_server_exit: OnServerExit::Exit,
            restart: Restart::Never,
            // Names the host in the records, unless it has a name.
            command: vec!["decide".into()],
            http: HttpOptions::default(),
            host_runs: true,
        }
    }
}
