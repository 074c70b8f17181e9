//! Starts a server as its client would, and asks it who it is.
use super::launch::Launch;
use crate::{
    servers::process::Server,
    turn::{Client, INITIALIZED, hello},
};
use serde_json::{Value, json};
use std::{
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::timeout,
};
use tr_core::printable;

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
    /// Its tools; none if it does not list all of them at once.
    pub(crate) tools: Vec<Value>,
}

/// How long it may take to list its tools.
const LISTS: Duration = Duration::from_secs(5);

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
    let client =
        Client::over(server).map_err(|error| format!("its output cannot be read: {error}"))?;
    // Servers that print other lines, too, are heard out.
    let asked = timeout(patience, client.answer("initialize", &hello("tool-guard doctor"))).await;
    let after = begun.elapsed();
    let tools = match &asked {
        Ok(Some(line)) if name(line).is_ok() => tools(&client).await,
        _ => Vec::new(),
    };
    let end = client.end().await;
    let said = match said {
        Some(said) => timeout(REST, said).await.ok().and_then(Result::ok).flatten(),
        None => None,
    };
    let said = said.map(|said| format!("; it said: {said}")).unwrap_or_default();
    let why = match asked {
        Err(_) => format!("no answer within {} s", patience.as_secs_f64()),
        Ok(Some(line)) => match name(&line) {
            Ok(who) => return Ok(Answered { who, after, tools }),
            Err(why) => why,
        },
        Ok(None) => {
            let how = end.map(|code| format!(" with exit code {code}")).unwrap_or_default();
            format!("it ended{how}")
        }
    };
    Err(format!("{why}{said}"))
}

/// The tools that it lists, if it lists all of them at once.
async fn tools(client: &Client) -> Vec<Value> {
    client.note(INITIALIZED);
    let listed = timeout(LISTS, client.answer("tools/list", &json!({}))).await;
    let listed = listed.ok().flatten().unwrap_or_default();
    let mut listed: Value = serde_json::from_slice(&listed).unwrap_or_default();
    let is_whole = listed["result"]["nextCursor"].is_null();
    let tools = listed.pointer_mut("/result/tools").and_then(Value::as_array_mut);
    tools.filter(|_| is_whole).map(std::mem::take).unwrap_or_default()
}

/// What a server that answered calls itself, or why it refused.
fn name(line: &[u8]) -> Result<String, String> {
    let answer: Value = serde_json::from_slice(line).unwrap_or_default();
    if let Some(message) = answer["error"]["message"].as_str() {
        return Err(format!("it refused the connection: {}", printable(message)));
    }
    let info = &answer["result"]["serverInfo"];
    let text = |name| info[name].as_str().unwrap_or_default();
    Ok(printable(format!("{} {}", text("name"), text("version")).trim()).into_owned())
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
