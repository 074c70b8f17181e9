//! What a call costs in the guard, by each of its doors. The guard is the one that the tests are built with: it is not
//! optimized, so its figures are to be compared with each other only.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::{Counts, collected};
use crate::{
    need::{self, PYTHON},
    repo::Repo,
    shell, test,
};

/// Calls of the shorter run; the longer one has twice as many.
const CALLS: u64 = 50;

/// Where the guard listens, and the tool that is called.
const DOORS: [(&str, Door, &str); 3] = [
    ("guard: a read on stdio", Door::Stdio, "read"),
    ("guard: a read over HTTP", Door::Http, "read"),
    ("guard: a keyed payment on stdio", Door::Stdio, "pay"),
];

#[derive(Clone, Copy)]
enum Door {
    Stdio,
    Http,
}

/// Adds the instructions of a start, and of a call by each door.
pub(super) fn measure(repo: &Repo, counts: &mut Counts) -> Result<()> {
    need::ensure(repo, &[&PYTHON])?;
    shell::run(repo.cargo().args(["build", "--bin", "tool-guard"]).args(test::ALL))?;
    for (name, door, tool) in DOORS {
        let once = instructions(repo, door, tool, CALLS)?;
        let twice = instructions(repo, door, tool, 2 * CALLS)?;
        counts.insert(name.into(), twice.saturating_sub(once).div_ceil(CALLS));
    }
    counts.insert("guard: its start".into(), instructions(repo, Door::Stdio, "read", 0)?);
    Ok(())
}

/// Instructions of a guard from its start to its end, with so many calls between.
fn instructions(repo: &Repo, door: Door, tool: &str, calls: u64) -> Result<u64> {
    let state = repo.target.join("xtask/gate");
    if state.exists() {
        fs::remove_dir_all(&state)?;
    }
    let mut guard = repo.command("valgrind");
    guard
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(test::debug(repo, "tool-guard"))
        .arg("mcp")
        .env("XDG_STATE_HOME", &state)
        .stderr(Stdio::piped());
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    match door {
        Door::Stdio => guard.stdin(Stdio::piped()).stdout(Stdio::piped()),
        Door::Http => guard.args(["--listen", &address]),
    };
    let mut child = guard.args(["--", "python3", SERVER]).spawn()?;
    let called = match door {
        Door::Stdio => on_stdio(&mut child, tool, calls),
        Door::Http => over_http(&child, &address, tool, calls),
    };
    if called.is_err() {
        child.kill()?;
    }
    let output = child.wait_with_output()?;
    called?;
    let report = String::from_utf8_lossy(&output.stderr);
    collected(&report).with_context(|| format!("callgrind's report has no total:\n{report}"))
}

/// All messages of a client: it begins, then calls.
fn messages(tool: &str, calls: u64) -> impl Iterator<Item = Value> {
    let client = json!({ "name": "gate", "version": "1" });
    let begin =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let call = move |n| {
        let arguments = json!({ "n": n, "text": "y".repeat(1000) });
        let mut call = json!({ "name": tool, "arguments": arguments });
        if tool == "pay" {
            call["_meta"] = json!({ "idempotencyKey": format!("order-{n}") });
        }
        call
    };
    let request = |method, params| json!({ "jsonrpc": "2.0", "method": method, "params": params });
    [request("initialize", begin), request("notifications/initialized", json!({}))]
        .into_iter()
        .chain([request("tools/list", json!({}))])
        .chain((0..calls).map(move |n| request("tools/call", call(n))))
        .zip(1..)
        .map(|(mut message, id)| {
            if message["method"] != "notifications/initialized" {
                message["id"] = json!(id);
            }
            message
        })
}

fn on_stdio(child: &mut Child, tool: &str, calls: u64) -> Result<()> {
    let mut stdin = child.stdin.take().context("it has an input")?;
    let mut answers = BufReader::new(child.stdout.take().context("it has an output")?).lines();
    for message in messages(tool, calls) {
        writeln!(stdin, "{message}")?;
        if !message["id"].is_null() {
            let answer: Value =
                serde_json::from_str(&answers.next().context("the guard has ended")??)?;
            ensure!(answer["id"] == message["id"] && answer["error"].is_null(), "{answer}");
        }
    }
    Ok(())
}

fn over_http(child: &Child, address: &str, tool: &str, calls: u64) -> Result<()> {
    let stream = connected(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let (mut writer, mut reader) = (stream.try_clone()?, BufReader::new(stream));
    let mut session = String::new();
    for message in messages(tool, calls) {
        let body = message.to_string();
        write!(
            writer,
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\n{session}content-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let (head, answer) = answer(&mut reader)?;
        let id = head.iter().find_map(|line| line.strip_prefix("mcp-session-id: "));
        if let Some(id) = id {
            session = format!("mcp-session-id: {id}\r\n");
        }
        ensure!(head[0].contains(" 20") && !answer.contains("\"error\""), "{head:?} {answer}");
    }
    shell::run(Command::new("kill").arg(child.id().to_string()))
}

/// The guard listens when it is ready.
#[expect(
    clippy::disallowed_methods,
    reason = "another program is waited for, and nothing here runs under tokio"
)]
fn connected(address: &str) -> Result<TcpStream> {
    for _ in 0..600 {
        if let Ok(stream) = TcpStream::connect(address) {
            return Ok(stream);
        }
        thread::sleep(Duration::from_millis(100));
    }
    bail!("the guard does not listen at {address}")
}

/// The lines of a response's head, and its body.
fn answer(reader: &mut BufReader<TcpStream>) -> Result<(Vec<String>, String)> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    ensure!(!head.is_empty(), "the guard has closed the connection");
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(Ok(0), str::parse)?];
    reader.read_exact(&mut body)?;
    Ok((head, String::from_utf8(body)?))
}

/// The server, from the root.
const SERVER: &str = "xtask/src/gate/echo.py";
