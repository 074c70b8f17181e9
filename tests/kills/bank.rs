//! An MCP server whose payments are lines in a ledger, and a client program that can be killed.
//!
//! `kills-bank serve LEDGER PIDS [ADDRESS]` serves `pay`: it waits, writes the payment down, syncs it, waits, writes
//! down that it answers, and answers; on standard input and output, or over HTTP.
//! `kills-bank shop FOLDER PIDS` serves `pay` and `list_payments`, which shows them in more ways than the true one.
//! `kills-bank client COMMAND…` starts a guard as clients do and passes lines both ways.
#[path = "listed.rs"]
mod listed;
mod web;
#[path = "../mcp-http/wire.rs"]
#[expect(dead_code, reason = "a test reads and writes more forms than this server")]
mod wire;

use serde_json::{Value, json};
use std::{
    env,
    fs::{File, OpenOptions},
    io::{self, BufRead as _, Write as _},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", ledger, pids] => serve(&open(ledger, pids)?),
        ["serve", ledger, pids, address] => web::serve(&open(ledger, pids)?, address),
        ["shop", folder, pids] => listed::serve(folder.as_ref(), pids),
        ["client", program, ref args @ ..] => client(program, args),
        _ => Err(io::Error::other(
            "kills-bank serve LEDGER PIDS [ADDRESS], shop FOLDER PIDS, or client COMMAND…",
        )),
    }
}

/// Opens the ledger, and says which process this is.
fn open(ledger: &str, pids: &str) -> io::Result<Arc<File>> {
    let append = |path| OpenOptions::new().append(true).create(true).open(path);
    let ledger = Arc::new(append(ledger)?);
    append(pids)?.write_all(format!("{}\n", std::process::id()).as_bytes())?;
    Ok(ledger)
}

fn serve(ledger: &Arc<File>) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let id = message["id"].clone();
        if message["method"] == "tools/call" {
            let ledger = ledger.clone();
            thread::spawn(move || say(&id, &pay(&ledger, &message["params"]["arguments"])?));
        } else if let Some(result) = result(&message) {
            say(&id, &result)?;
        }
    }
    Ok(())
}

/// The answer to a request that is no payment, if it is one.
fn result(message: &Value) -> Option<Value> {
    let version = &message["params"]["protocolVersion"];
    let (tools, info) = (json!({ "tools": {} }), json!({ "name": "bank", "version": "1" }));
    match message["method"].as_str()? {
        "initialize" => {
            Some(json!({ "protocolVersion": version, "capabilities": tools, "serverInfo": info }))
        }
        "server/discover" => Some(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": tools, "serverInfo": info,
            "resultType": "complete",
        })),
        "ping" => Some(json!({})),
        _ => None,
    }
}

fn pay(mut ledger: &File, arguments: &Value) -> io::Result<Value> {
    let order = arguments["order"].as_str().unwrap_or_default();
    wait(&arguments["before_us"]);
    // One write: lines of several processes do not mix.
    ledger.write_all(format!("{order}\n").as_bytes())?;
    ledger.sync_data()?;
    wait(&arguments["after_us"]);
    ledger.write_all(format!("answers {order}\n").as_bytes())?;
    let text = format!("paid {order} in process {}", std::process::id());
    Ok(json!({ "content": [{ "type": "text", "text": text }], "resultType": "complete" }))
}

fn wait(micros: &Value) {
    thread::park_timeout(Duration::from_micros(micros.as_u64().unwrap_or(0)));
}

fn say(id: &Value, result: &Value) -> io::Result<()> {
    let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}

fn client(program: &str, args: &[&str]) -> io::Result<()> {
    let mut guard = Command::new(program);
    let mut guard = guard.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut to_guard = guard.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut from_guard = guard.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    thread::spawn(move || io::copy(&mut io::stdin(), &mut to_guard));
    io::copy(&mut from_guard, &mut io::stdout())?;
    guard.wait()?;
    Ok(())
}
