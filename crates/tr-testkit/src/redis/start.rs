//! Starts a server: finds the program, a port and a folder, and waits until it is ready.

use super::{Options, Server, Value, client};
use crate::launch::{Folder, LOOK, LOOKS, LastWords, StartError, Tethered, find, free_port, path};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::mpsc::RecvTimeoutError,
};

pub(super) const PROGRAM: &str = "redis-server";

impl Options {
    /// Starts a server and waits until it replies.
    ///
    /// # Errors
    ///
    /// If there is no `redis-server`, or it does not get ready.
    pub fn start(self) -> Result<Server, StartError> {
        let program = find(PROGRAM, path());
        let program = program.ok_or_else(|| StartError::no_program(PROGRAM, PROGRAM))?;
        let folder = Folder::new("redis")?;
        loop {
            let port = free_port();
            match start(&self, &program, folder.path(), port) {
                Ok(process) => {
                    let process = Some(process);
                    return Ok(Server { options: self, program, folder, port, process });
                }
                // Another process took the port meanwhile.
                Err(error) if error.says("Address already in use") => {}
                Err(error) => return Err(error),
            }
        }
    }
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
    let args = options.args(&folder.to_string_lossy(), &socket.to_string_lossy(), port);
    let (process, lines) = Tethered::start(program.as_os_str(), &args, None)
        .map_err(|error| StartError::of(PROGRAM, &error))?;
    let mut log = LastWords::default();
    for _ in 0..LOOKS {
        if is_ready(options, &socket) {
            return Ok(process);
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => log.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(StartError::log("redis-server ended", log));
            }
        }
    }
    Err(StartError::log("redis-server does not get ready", log))
}

/// Over its own socket, since another process may listen on the port.
fn is_ready(options: &Options, socket: &Path) -> bool {
    let ask = |args: &[&str]| client::ask(socket, options.password.as_deref(), args);
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
