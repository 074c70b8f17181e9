//! Starts a server as its client would, and asks it who it is.
use super::launch::Launch;
use crate::mcp::Server;
use serde_json::{Value, json};
use std::{
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::ChildStdout,
    time::timeout,
};
use tr_core::printable;

/// The longest answer that is read, in bytes.
const LONGEST: u64 = 4 << 20;
/// How much of the standard error is read for its last line.
const MOST_SAID: u64 = 64 << 10;
/// How long the standard error is read after the end.
const REST: Duration = Duration::from_millis(500);

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answered {
    /// Its name and version, as it says.
    pub(crate) who: String,
    pub(crate) after: Duration,
}

/// Starts it, asks, and ends it.
///
/// # Errors
/// Why it did not answer.
pub(crate) async fn probe(launch: &Launch, patience: Duration) -> Result<Answered, String> {
    if !launch.folder.is_dir() {
        return Err(format!("its folder does not exist: {}", launch.folder.display()));
    }
    #[expect(clippy::disallowed_methods, reason = "measures a foreign process, in no test's time")]
    let begun = Instant::now();
    let server = Server::start_with(&launch.command, |command| {
        command.envs(launch.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(&launch.folder).stderr(Stdio::piped());
    });
    let mut server = server.map_err(|error| format!("it cannot be started: {error}"))?;
    let said = server.supervisor.stderr.take().map(|stderr| tokio::spawn(last_line(stderr)));
    let asked = timeout(patience, ask(&mut server)).await;
    let end = if matches!(asked, Ok(Ok(None))) { server.wait().await } else { None };
    server.end().await;
    let said = match said {
        Some(said) => timeout(REST, said).await.ok().and_then(Result::ok).flatten(),
        None => None,
    };
    let said = said.map(|said| format!("; it said: {said}")).unwrap_or_default();
    match asked {
        Err(_) => Err(format!("no answer within {} s{said}", patience.as_secs_f64())),
        Ok(Ok(Some(who))) => Ok(Answered { who, after: begun.elapsed() }),
        Ok(Ok(None)) => {
            let how = end.map(|code| format!(" with exit code {code}")).unwrap_or_default();
            Err(format!("it ended{how}{said}"))
        }
        Ok(Err(why)) => Err(format!("{why}{said}")),
    }
}

/// Its name, `None` if it ended before it said so.
async fn ask(server: &mut Server) -> Result<Option<String>, String> {
    let info = json!({ "name": "tool-guard doctor", "version": env!("CARGO_PKG_VERSION") });
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info },
    });
    if let Some(input) = &mut server.input {
        // A server that has ended reads nothing; its output says more.
        let _ = input.write_all(format!("{hello}\n").as_bytes()).await;
    }
    let output: ChildStdout = server.take_output();
    let mut output = BufReader::new(output.take(LONGEST));
    let mut line = Vec::new();
    loop {
        line.clear();
        match output.read_until(b'\n', &mut line).await {
            Ok(0) if output.get_ref().limit() == 0 => {
                return Err("its output is no MCP: 4 MiB without an answer".into());
            }
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
        // Some servers print other lines, too.
        let Ok(answer) = serde_json::from_slice::<Value>(&line) else { continue };
        if answer["id"] != json!(1) || answer.get("method").is_some() {
            continue;
        }
        if let Some(message) = answer["error"]["message"].as_str() {
            return Err(format!("it refused the connection: {}", printable(message)));
        }
        let info = &answer["result"]["serverInfo"];
        let text = |name| info[name].as_str().unwrap_or_default();
        return Ok(Some(
            printable(format!("{} {}", text("name"), text("version")).trim()).into_owned(),
        ));
    }
}

/// The last line that is not empty.
async fn last_line(mut stderr: impl AsyncRead + Unpin) -> Option<String> {
    let mut said = Vec::new();
    let _ = (&mut stderr).take(MOST_SAID).read_to_end(&mut said).await;
    // What is left must not block the server.
    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    let said = String::from_utf8_lossy(&said).into_owned();
    let line = said.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(printable(&line.chars().take(200).collect::<String>()).into_owned())
}
