//! What an operator sees of each guard: an admin page, and a log.
use super::{
    log::{self, Log},
    operator,
};
use crate::{
    connect::address,
    front::{
        access::secret,
        listener::{OneRequest, bind_for_operator, serve},
    },
};
use anyhow::{Context as _, bail};
use clap::Args;
use std::{future::pending, net::SocketAddr, path::PathBuf};
use tool_reliability::{admin::Admin, telemetry::TARGET};

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
    pub(crate) fn log(&self) -> anyhow::Result<Option<log::Written>> {
        log::start(self.log, self.log_file.as_deref())
    }
}

/// Listens at the operator's address, if there is one, which must be a loopback address unless there is a file with a
/// token of its own; without one the operator's token protects `admin`. Returns what serves requests until it is dropped.
pub(crate) async fn bind(
    admin: Admin,
    options: &Operation,
) -> anyhow::Result<Option<impl Future<Output = ()> + Send + use<>>> {
    let Some(address) = options.admin else { return Ok(None) };
    let (file, token) = match &options.admin_token_file {
        Some(file) => (file.clone(), secret(file)?),
        None if address.ip().to_canonical().is_loopback() => {
            let (file, token) = operator::token().with_context(|| {
                format!("--admin {address} needs a token: give --admin-token-file, or repair this")
            })?;
            (file, token.to_string())
        }
        None => bail!(
            "--admin {address}: other machines can reach this address: give --admin-token-file, or use 127.0.0.1"
        ),
    };
    let admin = admin.token(&token);
    let admin = admin.with_context(|| format!("{} holds no usable token", file.display()))?;
    let Some(listener) = bind_for_operator(address, "--admin").await? else { return Ok(None) };
    tracing::warn!(target: TARGET, event = "admin_token", file = %file.display());
    Ok(Some(async {
        serve((listener, "admin_listening"), OneRequest(admin), pending()).await;
    }))
}
