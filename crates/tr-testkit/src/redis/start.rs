//! Starts the process of a server, and waits until it is ready.

use super::{Options, command};
use crate::{
    launch::{StartError, Tethered, find, wait},
    resp::Value,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

const PROGRAM: &str = "redis-server";

pub(super) fn program() -> Result<PathBuf, StartError> {
    find(PROGRAM, []).ok_or_else(|| StartError::no_program(PROGRAM, PROGRAM))
}

/// Starts a server in its folder and on its port.
pub(super) fn start(
    options: &Options,
    program: &Path,
    folder: &Path,
    port: u16,
) -> Result<Tethered, StartError> {
    let socket = socket(folder);
    // A killed server leaves its socket file behind.
    let _ = fs::remove_file(&socket);
    #[cfg(feature = "tls")]
    if let Some(issued) = &options.tls {
        issued.write(folder).map_err(|error| StartError::folder(folder, &error))?;
    }
    let mut args = options.args(&folder.to_string_lossy(), &socket.to_string_lossy(), port);
    if options.is_sentinel {
        // It rewrites its file.
        let file = folder.join("sentinel.conf");
        let line = |arg: &String| match arg.strip_prefix("--") {
            Some(directive) => format!("\n{directive}"),
            None => format!(" \"{arg}\""),
        };
        let text: String = args.iter().map(line).collect();
        fs::write(&file, text).map_err(|error| StartError::folder(&file, &error))?;
        args = vec![file.to_string_lossy().into_owned(), "--sentinel".into()];
    }
    let (process, lines) = Tethered::start(program, &args, None)?;
    let faults = ("redis-server ended", "redis-server does not get ready");
    wait(&lines, faults, |_| is_ready(options, &socket)).map(|()| process)
}

/// Over its own socket, since another process may listen on the port.
fn is_ready(options: &Options, socket: &Path) -> bool {
    let ask = |args: &[&str]| command::ask(socket, options.password.as_deref(), args);
    let answers = ask(&["PING"]).is_ok_and(|pong| pong.text() == Some("PONG"));
    let is_in_step = |info: &Value| {
        info.text().is_some_and(|text| text.lines().any(|line| line == "master_link_status:up"))
    };
    answers
        && (options.replica_of.is_none()
            || ask(&["INFO", "replication"]).is_ok_and(|info| is_in_step(&info)))
}

pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}
