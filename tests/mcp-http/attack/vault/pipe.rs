//! The lines of a command, which a bridge carries: one process each.
use super::{End, Vault, answer, progress};
use crate::wire::close;
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex},
    thread,
};

/// The command of a process that passes its lines to this port.
pub(super) fn command(port: u16) -> String {
    format!("exec '{}' {port}", env!("CARGO_BIN_EXE_mcp-http-bridge"))
}

/// Serves one process.
pub(super) fn serve(vault: &Vault, stream: TcpStream) {
    let place = {
        let mut state = vault.state();
        state.pipes += 1;
        format!("process {}", state.pipes)
    };
    let to = Arc::new(Mutex::new(stream.try_clone().unwrap()));
    let say = |to: &Mutex<TcpStream>, message: &Value| {
        let _ = to.lock().unwrap().write_all(format!("{message}\n").as_bytes());
    };
    for line in BufReader::new(&stream).lines().map_while(Result::ok) {
        let body: Value = serde_json::from_str(&line).unwrap_or_default();
        if body.get("id").is_none() || body.get("method").is_none() {
            vault.note(&place, &body);
        } else if body["method"] == "tools/call" {
            let (number, vault, to) = (vault.execute(&place, &body), vault.clone(), to.clone());
            thread::spawn(move || {
                if let Some(progress) = progress(&body) {
                    say(&to, &progress);
                }
                match vault.finish(number) {
                    Ok(result) => say(&to, &answer(&body, Some(result))),
                    Err(End::Lost) => close(&to.lock().unwrap()),
                    Err(_) => {}
                }
            });
        } else {
            say(&to, &answer(&body, Vault::result(&body)));
        }
    }
    // What its session asked for is not answered any more.
    vault.end(End::Cancelled, |execution| execution.place == place);
}
