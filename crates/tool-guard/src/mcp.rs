//! `tool-guard mcp`: a guard between MCP clients, on standard input and output or over HTTP, and one server.
use crate::{
    doors::{http::door::HttpDoor, pump::Pump},
    engine::{
        guard::Guard,
        options::{Mode, Restart},
    },
    front::{
        access::{Access, token},
        listener,
    },
    servers::{
        http_to_command::{HttpToCommand, Limits},
        http_to_http::HttpToHttp,
        stdio_to_command::StdioToCommand,
        stdio_to_http::StdioToHttp,
        upstream::Upstream,
    },
    wire::lines::Lines,
};
use std::{
    io::{self, IsTerminal as _},
    net::SocketAddr,
    panic::resume_unwind,
    process::ExitCode,
    sync::Arc,
};

pub(crate) use crate::engine::options::Options;

/// Runs the guard until the client disconnects, or the server ends.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    if let Some(address) = options.http.listen {
        return listen(options, address).await;
    }
    anyhow::ensure!(
        options.restart == Restart::Never || options.mode == Mode::Enforce,
        "--restart crash needs --mode enforce: the other modes change nothing"
    );
    if io::stdin().is_terminal() {
        eprintln!(
            "tool-guard: waits for an MCP client on standard input, which starts this command itself: tool-guard install writes it into a client's configuration, tool-guard demo shows it; Ctrl-C ends it"
        );
    }
    let (guard, beside, ended) = Guard::start(&options).await?;
    // Another task waits for the signal, which costs a call almost nothing.
    let ended = tokio::spawn(ended);
    let signals = ended.abort_handle();
    let connection = format!("mcp-{:016x}", fastrand::u64(..));
    let proxy = guard.proxy(guard.client(&connection));
    let on_exit = options.on_server_exit;
    // A separate task: waking the runtime's main future costs a system call each time.
    let pumped = if options.http.upstream.is_some() {
        let server = StdioToHttp::new(&options, &guard)?;
        let (proxy, lines) = (proxy.with_messages(), Lines::new(options.max_line));
        tokio::spawn(Pump::new(&guard, proxy, server, lines, on_exit)?.run(ended))
    } else {
        let lines = options.mode.lines(options.max_line);
        let server = StdioToCommand::start(options, &guard)?;
        tokio::spawn(Pump::new(&guard, proxy, server, lines, on_exit)?.run(ended))
    };
    let code = pumped.await.unwrap_or_else(|error| resume_unwind(error.into_panic()));
    signals.abort();
    guard.finish(beside).await;
    Ok(code)
}

/// Serves clients over Streamable HTTP at `address` until a signal.
async fn listen(options: Options, address: SocketAddr) -> anyhow::Result<ExitCode> {
    let (guard, beside, ended) = Guard::start(&options).await?;
    let (guard, http) = (Arc::new(guard), &options.http);
    let token = http.token_file.as_deref().map(token).transpose()?;
    let listener = listener::bind(address, token.is_some() && http.behind_tls).await?;
    let (hosts, origins) = (http.allow_host.clone(), http.allow_origin.clone());
    let access = Access { token, hosts, origins, ..Access::default() };
    let listener = (listener, "mcp_listening");
    let signal = if http.upstream.is_some() {
        let upstream = Upstream::new(http, guard.statuses.clone(), options.max_line)?;
        let remote = HttpToHttp { upstream, uri: None, guard: guard.clone() };
        listener::serve(listener, HttpDoor::new(guard.clone(), remote, access), ended).await
    } else {
        let limits = Limits { most: http.max_sessions, idle: http.session_idle };
        let children = HttpToCommand::new(guard.clone(), options.command, limits);
        let door = HttpDoor::new(guard.clone(), children.clone(), access);
        let signal = listener::serve(listener, door, ended).await;
        children.end().await;
        signal
    };
    guard.finish(beside).await;
    Ok(ExitCode::from(128 + signal))
}
