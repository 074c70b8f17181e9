//! Helpers to start real servers: finding programs, folders, ports, processes and logs.

use std::{
    collections::VecDeque,
    env, fmt,
    io::{self, BufRead as _, BufReader, Write as _},
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// How long one check of a server that is not ready waits for a log line, and how many checks there
/// are: 20 s at least.
const LOOK: Duration = Duration::from_millis(10);
pub(crate) const LOOKS: usize = 2_000;

/// Ports outside the ephemeral range, so that a server's port is free when it is restarted.
const PORTS: Range<u32> = 20_000..32_000;

/// The first program of this name on the `PATH`, or in `more` folders.
pub(crate) fn find(program: &str, more: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
    folders.chain(more).map(|folder| folder.join(program)).find(|program| program.is_file())
}

pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Concurrent tests start their search at different ports.
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = process::id().wrapping_mul(37).wrapping_add(next) % PORTS.len() as u32;
        let port = (PORTS.start + offset) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Starts a server on a free port, which is returned with it.
pub(crate) fn on_free_port(
    start: impl Fn(u16) -> Result<Tethered, StartError>,
) -> Result<(u16, Option<Tethered>), StartError> {
    loop {
        let port = free_port();
        match start(port) {
            // Another process took the port meanwhile.
            Err(error) if error.says("Address already in use") => {}
            started => return started.map(|process| (port, Some(process))),
        }
    }
}

/// Waits until servers are ready, and collects what they log. `ended` and `late` say what is wrong
/// if one ends before that, or if it takes too long.
pub(crate) fn wait(
    lines: &Receiver<String>,
    (ended, late): (&str, &str),
    is_ready: impl Fn(&LogTail) -> bool,
) -> Result<(), StartError> {
    let mut log = LogTail::default();
    for _ in 0..LOOKS {
        if is_ready(&log) {
            return Ok(());
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => log.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(StartError::log(ended, log)),
        }
    }
    Err(StartError::log(late, log))
}

/// A server did not start; the text says what to do, or has the last lines of its log.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// Lines of the server's log that an error shows.
const SHOWN: usize = 20;

/// The last lines of a server's log.
#[derive(Debug, Default)]
pub(crate) struct LogTail(VecDeque<String>);

impl LogTail {
    pub(crate) fn push(&mut self, line: String) {
        if self.0.len() == SHOWN {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn says(&self, words: &str) -> bool {
        self.0.iter().any(|line| line.contains(words))
    }
}

impl StartError {
    pub(crate) fn no_program(program: &str, package: &str) -> Self {
        Self(format!(
            "{program} is not on the PATH: run `cargo xtask test`, or install it (on Debian: `apt-get install {package}`)"
        ))
    }

    pub(crate) fn folder(folder: &Path, error: &io::Error) -> Self {
        Self(format!("cannot create the folder {}: {error}", folder.display()))
    }

    pub(crate) fn of(program: &Path, error: &io::Error) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        Self(format!("cannot start {name}: {error}"))
    }

    pub(crate) fn log(what: &str, log: LogTail) -> Self {
        let lines = log.0.into_iter().map(|line| format!("\n  {line}"));
        Self(format!("{what}; its last lines:{}", lines.collect::<String>()))
    }

    /// Whether the last lines contain this.
    pub(crate) fn says(&self, words: &str) -> bool {
        self.0.contains(words)
    }
}

/// Like `Display`, since tests unwrap it.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An empty folder among the system's temporary files, which is removed on drop.
pub(crate) fn folder(kind: &str) -> Result<TempDir, StartError> {
    let made = tempfile::Builder::new().prefix(&format!("tr-{kind}-")).tempdir();
    made.map_err(|error| StartError::folder(&env::temp_dir(), &error))
}

/// Starts a watcher, then replaces the shell by the program. The watcher exits when it reads a
/// line; if the pipe is closed, because this process died, it kills the program first.
///
/// The kernel's parent-death signal would need no watcher, but it is sent when the *thread* that
/// started the program ends, and tests are threads.
const WATCHED: &str = r#"exec 3<&0
(read -r _ <&3 || kill -9 $$) </dev/null >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null 2>&1"#;

/// The user that runs a program instead of the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// A running program; killed on drop, and by its watcher when this process dies in any way.
#[derive(Debug)]
pub(crate) struct Tethered {
    child: Child,
}

impl Tethered {
    /// Starts a program in its own process group, so that an interrupt from the terminal ends this
    /// process first. Its output and errors arrive as lines until it ends; reading them is
    /// optional.
    pub(crate) fn start(
        program: &Path,
        args: &[String],
        user: Option<User>,
    ) -> Result<(Self, Receiver<String>), StartError> {
        let mut command = Command::new("/bin/sh");
        if let Some(User { user, group }) = user {
            // A folder that the user may enter, unlike perhaps the current one.
            command.uid(user).gid(group).current_dir("/");
        }
        let mut child = command
            .args(["-c", WATCHED, "watched"])
            .arg(program)
            .args(args)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| StartError::of(program, &error))?;
        let stdout = child.stdout.take().expect("it is piped");
        let (line, lines) = channel();
        thread::spawn(move || {
            let read = BufReader::new(stdout).lines().map_while(Result::ok);
            // Reads on without a receiver, since a full pipe would block the program.
            read.for_each(|text| drop(line.send(text)));
        });
        Ok((Self { child }, lines))
    }

    /// The process id: the shell's, which the program replaced.
    #[cfg(feature = "redis")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it (`SIGKILL`) and waits for its end.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        // The watcher exits before the process id can be reused.
        if let Some(mut watcher) = self.child.stdin.take() {
            let _ = watcher.write_all(b"\n");
        }
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Tethered {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
