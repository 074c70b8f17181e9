//! The command line of `tool-guard serve`.
use crate::{
    connect::Reach,
    engine::{
        operation::Operation,
        options::{Attribution, address},
        recording::Recording,
    },
    export::ExportOptions,
};
use clap::Args;
use std::{net::SocketAddr, path::PathBuf};

/// Serves the tools of a configuration.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The stack's configuration with the tools, as TOML or JSON; variables override it. Read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,

    /// The address that serves POST /call, POST /cancel and GET /tools
    #[arg(long, value_parser = address, value_name = "ADDRESS", default_value = "127.0.0.1:9480")]
    pub(crate) listen: SocketAddr,

    /// Read requests from standard input and write answers to standard output, one on a line, instead of
    /// listening
    #[arg(long, conflicts_with_all = ["listen", "token_file", "behind_tls", "allow_host", "allow_origin"])]
    pub(crate) stdio: bool,

    /// The file with the token that requests must carry as x-tool-guard-token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// A proxy in front of this address speaks TLS; needed, with a token, to listen to other machines
    #[arg(long)]
    pub(crate) behind_tls: bool,

    /// A name, besides those of this machine, that requests may have in `host`
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,

    /// An origin whose web pages may send requests, such as `https://console.example`
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    /// The longest request, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 2 * 1024 * 1024, value_parser = clap::value_parser!(u32).range(1024..))]
    pub(crate) max_body: u32,

    #[command(flatten)]
    pub(crate) attribution: Attribution,

    #[command(flatten)]
    pub(crate) reach: Reach,

    #[command(flatten)]
    pub(crate) operation: Operation,

    #[command(flatten)]
    pub(crate) recording: Recording,

    #[command(flatten)]
    pub(crate) export: ExportOptions,
}
