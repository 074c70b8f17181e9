//! An MCP server whose payments are lines in a ledger, and a client program that can be killed.
//!
//! `kills-bank serve LEDGER PIDS` serves `pay`: it waits, writes the payment down, syncs it, waits and answers.
//! `kills-bank client COMMAND…` starts a guard as clients do and passes lines both ways.
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
        ["serve", ledger, pids] => serve(ledger, pids),
        ["client", program, ref args @ ..] => client(program, args),
        _ => Err(io::Error::other("kills-bank serve LEDGER PIDS, or kills-bank client COMMAND…")),
    }
}

fn serve(ledger: &str, pids: &str) -> io::Result<()> {
    let append = |path| OpenOptions::new().append(true).create(true).open(path);
    let ledger = Arc::new(append(ledger)?);
    append(pids)?.write_all(format!("{}\n", std::process::id()).as_bytes())?;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let (id, params) = (message["id"].clone(), message["params"].clone());
        match message["method"].as_str() {
            Some("initialize") => answer(
                &id,
                &json!({
                    "protocolVersion": params["protocolVersion"], "capabilities": { "tools": {} },
                    "serverInfo": { "name": "bank", "version": "1" },
                }),
            )?,
            Some("tools/call") => {
                let ledger = ledger.clone();
                thread::spawn(move || pay(&ledger, &id, &params["arguments"]));
            }
            _ => {}
        }
    }
    Ok(())
}

fn pay(mut ledger: &File, id: &Value, arguments: &Value) -> io::Result<()> {
    let order = arguments["order"].as_str().unwrap_or_default();
    wait(&arguments["before_us"]);
    // One write: lines of several processes do not mix.
    ledger.write_all(format!("{order}\n").as_bytes())?;
    ledger.sync_data()?;
    wait(&arguments["after_us"]);
    let text = format!("paid {order} in process {}", std::process::id());
    answer(id, &json!({ "content": [{ "type": "text", "text": text }] }))
}

fn wait(micros: &Value) {
    thread::park_timeout(Duration::from_micros(micros.as_u64().unwrap_or(0)));
}

fn answer(id: &Value, result: &Value) -> io::Result<()> {
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
