//! What an operator sees of each guard: an admin page, and a log.
use super::log::{self, Log};
use crate::connect::address;
use clap::Args;
use std::{net::SocketAddr, path::PathBuf};
use tracing_appender::non_blocking::WorkerGuard;

/// The options of both.
#[derive(Debug, Args)]
pub(crate) struct Operation {
    /// The address that serves GET and POST /debug/tool-reliability, such as 127.0.0.1:9470
    #[arg(long, value_parser = address, value_name = "ADDRESS")]
    pub(crate) admin: Option<SocketAddr>,

    /// The file with the token that admin requests must carry [default: tool-guard/admin-token in the user's
    /// state folder, which is made at first need]
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// Which events are logged on standard error, as JSON lines or for people
    #[arg(long, value_enum, default_value_t = Log::Warn)]
    log: Log,

    /// Append the events to FILE instead of standard error
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

impl Operation {
    /// Logs as long as the result lives.
    pub(crate) fn log(&self) -> anyhow::Result<Option<WorkerGuard>> {
        log::start(self.log, self.log_file.as_deref())
    }
}
