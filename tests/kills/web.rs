//! The bank over Streamable HTTP: one request a connection, one session a process.
use crate::{
    pay, result,
    wire::{Head, message},
};
use serde_json::{Value, json};
use std::{
    fs::File,
    hash::{BuildHasher as _, RandomState},
    io::{self, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

pub(crate) fn serve(ledger: &Arc<File>, address: &str) -> io::Result<()> {
    let session = format!("{:016x}", RandomState::new().hash_one(address));
    for stream in TcpListener::bind(address)?.incoming() {
        let (stream, ledger, session) = (stream?, ledger.clone(), session.clone());
        thread::spawn(move || answer(stream, &ledger, &session));
    }
    Ok(())
}

fn answer(mut to: TcpStream, ledger: &File, session: &str) -> io::Result<()> {
    let mut from = BufReader::new(to.try_clone()?);
    let Some(head) = Head::read(&mut from) else { return Ok(()) };
    let mut say = |status: &str, body: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("mcp-session-id", session),
            ("connection", "close"),
        ];
        to.write_all(&message(&format!("HTTP/1.1 {status}"), &headers, body.as_bytes()))
    };
    if head.method() != "POST" {
        return say(if head.method() == "DELETE" { "200 OK" } else { "405 No" }, "");
    }
    let mut text = String::new();
    head.body(from).read_to_string(&mut text)?;
    let asked: Value = serde_json::from_str(&text)?;
    let is_modern = head.header("mcp-protocol-version") == Some("2026-07-28");
    let is_known = is_modern || head.header("mcp-session-id") == Some(session);
    if !is_known && asked["method"] != "initialize" {
        return say("404 Not Found", "");
    }
    let id = &asked["id"];
    let answer = |result| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    if asked["method"] != "tools/call" {
        return match result(&asked) {
            Some(result) => say("200 OK", &answer(result)),
            None if id.is_null() => say("202 Accepted", ""),
            None => say("404 Not Found", ""),
        };
    }
    let arguments = &asked["params"]["arguments"];
    if arguments["streams"] == true {
        // The head comes before the payment, and the end of the connection ends the stream.
        to.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        )?;
        let event = format!("data: {}\n\n", answer(pay(ledger, arguments)?));
        return to.write_all(event.as_bytes());
    }
    let result = pay(ledger, arguments)?;
    say("200 OK", &answer(result))
}
