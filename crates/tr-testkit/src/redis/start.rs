//! Finding the program, a port and a folder, and waiting until the server is ready.

use super::{Folder, Options, Server, Value, client};
use crate::tether::Tethered;
use std::{
    collections::VecDeque,
    env,
    error::Error,
    fmt, fs, io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process,
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::RecvTimeoutError,
    },
    time::Duration,
};

/// Why there is no server; says what to do about it, or what the server said last.
#[derive(Clone, PartialEq, Eq)]
pub struct StartError(String);

/// How long one look at a server that is not ready waits for news, and how many there are: 20 s at least.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 2_000;

/// Ports that systems don't give to whoever asks for any, so that ours is free when its server is restarted.
const PORTS: std::ops::Range<u32> = 20_000..32_000;

/// Lines of the server's log that an error shows.
const SHOWN: usize = 20;

impl Options {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    ///
    /// There is no `redis-server`, or it does not get ready.
    pub fn start(self) -> Result<Server, StartError> {
        let program = find("redis-server").ok_or_else(StartError::no_program)?;
        let folder = Folder::new()?;
        loop {
            let port = free_port();
            match start(&self, &program, &folder.0, port) {
                Ok(process) => {
                    let process = Some(process);
                    return Ok(Server { options: self, program, folder, port, process });
                }
                // Somebody else took it since we looked.
                Err(error) if error.0.contains("Address already in use") => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Starts a server where it belongs.
pub(super) fn start(
    options: &Options,
    program: &Path,
    folder: &Path,
    port: u16,
) -> Result<Tethered, StartError> {
    let socket = socket(folder);
    // One that was killed leaves its socket behind.
    let _ = fs::remove_file(&socket);
    let args = options.args(&folder.to_string_lossy(), &socket.to_string_lossy(), port);
    let (process, lines) =
        Tethered::start(program.as_os_str(), &args).map_err(|error| StartError::of(&error))?;
    let mut log = VecDeque::new();
    for _ in 0..LOOKS {
        if is_ready(options, &socket) {
            return Ok(process);
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                log.truncate(SHOWN - 1);
                log.push_front(line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(StartError::log("redis-server ended", log));
            }
        }
    }
    Err(StartError::log("redis-server does not get ready", log))
}

/// Asked over its own socket, since anybody may listen on a port.
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

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|program| program.is_file())
}

fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn free_port() -> u16 {
    loop {
        // Tests that run at the same time begin their search at different places.
        let place = process::id().wrapping_mul(37).wrapping_add(next()) % PORTS.len() as u32;
        let port = (PORTS.start + place) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

impl Folder {
    fn new() -> Result<Self, StartError> {
        loop {
            let folder = env::temp_dir().join(format!("tr-redis-{}-{}", process::id(), next()));
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(StartError::folder(&folder, &error)),
            }
        }
    }
}

impl StartError {
    fn no_program() -> Self {
        Self(
            "redis-server is not on the PATH: run `cargo xtask test`, or install it (on Debian: `apt-get install redis-server`)"
                .into(),
        )
    }

    pub(super) fn folder(folder: &Path, error: &io::Error) -> Self {
        Self(format!("cannot make the folder {}: {error}", folder.display()))
    }

    fn of(error: &io::Error) -> Self {
        Self(format!("redis-server does not start: {error}"))
    }

    fn log(what: &str, log: VecDeque<String>) -> Self {
        let lines = log.into_iter().rev().map(|line| format!("\n  {line}"));
        Self(format!("{what}; its last words:{}", lines.collect::<String>()))
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As it is displayed: tests unwrap it.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for StartError {}
