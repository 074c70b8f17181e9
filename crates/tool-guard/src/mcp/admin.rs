//! `tool-guard mcp --admin`: a small HTTP listener beside the proxy.
use super::{operation::Operation, operator};
use crate::{files::read_secret, front::listener::serve, listener::OneRequest};
use anyhow::{Context as _, bail};
use std::future::pending;
use tokio::net::TcpListener;
use tool_reliability::{admin::Admin, telemetry::TARGET};

/// Listens at the operator's address, if there is one, which must be a loopback address unless there is a file with a
/// token of its own; without one the operator's token protects `admin`. Returns what serves requests until it is dropped.
pub(crate) async fn bind(
    admin: Admin,
    options: &Operation,
) -> anyhow::Result<Option<impl Future<Output = ()> + Send + use<>>> {
    let Some(address) = options.admin else { return Ok(None) };
    let (file, token) = match &options.admin_token_file {
        Some(file) => (file.clone(), read_secret(file)),
        None if address.ip().to_canonical().is_loopback() => {
            let (file, token) = operator::token().with_context(|| {
                format!("--admin {address} needs a token: give --admin-token-file, or repair this")
            })?;
            (file, Ok(token.to_string()))
        }
        None => bail!(
            "--admin {address}: other machines can reach this address: give --admin-token-file, or use 127.0.0.1"
        ),
    };
    let token = token.with_context(|| format!("cannot use {}", file.display()))?;
    let token = token.trim_end_matches(['\r', '\n']);
    crate::secrets::keep(token);
    let admin = admin.token(token);
    let admin = admin.with_context(|| format!("{} holds no usable token", file.display()))?;
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("--admin {address}: cannot listen there"))?;
    if let Ok(address) = listener.local_addr() {
        let token_file = file.display();
        tracing::warn!(target: TARGET, event = "admin_listening", address = %address, token_file = %token_file);
    }
    Ok(Some(async {
        serve(listener, OneRequest(admin), pending()).await;
    }))
}
