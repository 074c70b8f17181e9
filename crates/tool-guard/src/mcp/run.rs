//! Runs the guard of one server, with the doors and the server that the options name.
use super::http;
use crate::{
    doors::pump::Pump,
    engine::{
        guard::Guard,
        options::{Mode, Options, Restart},
    },
    servers::{command::Command, remote::Remote},
    wire::lines::Lines,
};
use std::{
    io::{self, IsTerminal as _},
    panic::resume_unwind,
    process::ExitCode,
};

/// Runs the guard until the client disconnects, or the server ends.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    if let Some(address) = options.http.listen {
        return http::run(options, address).await;
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
    let logging = options.operation.log()?;
    let guard = Guard::new(&options, logging.is_some()).await?;
    let (beside, ended) = guard.beside(&options).await?;
    // Another task waits for the signal, which costs a call almost nothing.
    let ended = tokio::spawn(ended);
    let signals = ended.abort_handle();
    let connection = format!("mcp-{:016x}", fastrand::u64(..));
    let proxy = guard.proxy(guard.client(&connection));
    let on_exit = options.on_server_exit;
    // A separate task: waking the runtime's main future costs a system call each time.
    let pumped = if options.http.upstream.is_some() {
        let (server, lines) = (Remote::new(&options, &guard)?, Lines::new(options.max_line));
        tokio::spawn(Pump::new(&guard, proxy.with_messages(), server, lines, on_exit)?.run(ended))
    } else {
        let lines = options.mode.lines(options.max_line);
        let server = Command::start(options, &guard)?;
        tokio::spawn(Pump::new(&guard, proxy, server, lines, on_exit)?.run(ended))
    };
    let code = pumped.await.unwrap_or_else(|error| resume_unwind(error.into_panic()));
    signals.abort();
    guard.finish(beside).await;
    Ok(code)
}
