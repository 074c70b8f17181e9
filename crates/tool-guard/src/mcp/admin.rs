//! `tool-guard mcp --admin`: a small HTTP listener beside the proxy.
use crate::listener;
use anyhow::{Context as _, bail};
use std::{fs, net::SocketAddr, path::Path};
use tokio::net::TcpListener;
use tool_reliability::{admin::Admin, telemetry::TARGET};

/// Protects `admin` by the token in a file, if there is one.
pub(crate) fn with_token(admin: Admin, file: Option<&Path>) -> anyhow::Result<Admin> {
    let Some(file) = file else { return Ok(admin) };
    let token =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let admin = admin.token(token.trim_end_matches(['\r', '\n']));
    admin.with_context(|| format!("{} holds no usable token", file.display()))
}

/// Listens at `address`, which must be a loopback address unless there is a token.
pub(crate) async fn bind(address: SocketAddr, has_token: bool) -> anyhow::Result<TcpListener> {
    if !has_token && !address.ip().to_canonical().is_loopback() {
        bail!(
            "--admin {address}: other machines can reach this address: give --admin-token-file, or use 127.0.0.1"
        );
    }
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("--admin {address}: cannot listen there"))
}

/// Serves requests until it is dropped.
pub(crate) async fn serve(listener: TcpListener, admin: Admin) {
    if let Ok(address) = listener.local_addr() {
        tracing::warn!(target: TARGET, event = "admin_listening", address = %address);
    }
    listener::serve(listener, admin).await;
}
