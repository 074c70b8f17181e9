//! Serves clients over Streamable HTTP until a signal.
use crate::{
    doors::http::door::HttpDoor,
    engine::{guard::Guard, options::Options},
    front::{
        access::{Access, token},
        listener,
    },
    servers::{
        behind::Remote,
        child::{Children, Limits},
        upstream::Upstream,
    },
};
use anyhow::Context as _;
use std::{net::SocketAddr, process::ExitCode, sync::Arc};
use tool_reliability::telemetry::TARGET;

/// Serves clients at `address` until a signal.
pub(crate) async fn run(options: Options, address: SocketAddr) -> anyhow::Result<ExitCode> {
    let logging = options.operation.log()?;
    let guard = Arc::new(Guard::new(&options, logging.is_some()).await?);
    let (beside, ended) = guard.beside(&options).await?;
    let http = &options.http;
    let token = http.token_file.as_deref().map(token).transpose()?;
    let listener = listener::bind(address, token.is_some(), http.behind_tls).await?;
    let (hosts, origins) = (http.allow_host.clone(), http.allow_origin.clone());
    let access = Access { token, hosts, origins, ..Access::default() };
    let at = listener.local_addr().context("the listener has no address")?;
    tracing::warn!(target: TARGET, event = "mcp_listening", address = %at);
    let signal = if http.upstream.is_some() {
        let upstream = Upstream::new(http, guard.statuses.clone(), options.max_line)?;
        let remote = Remote::new(upstream, guard.clone());
        listener::serve(listener, HttpDoor::new(guard.clone(), remote, access), ended).await
    } else {
        let limits = Limits { most: http.max_sessions, idle: http.session_idle };
        let children = Children::new(guard.clone(), options.command, limits);
        let door = HttpDoor::new(guard.clone(), children.clone(), access);
        let signal = listener::serve(listener, door, ended).await;
        children.end().await;
        signal
    };
    guard.finish(beside).await;
    Ok(ExitCode::from(128 + signal))
}
