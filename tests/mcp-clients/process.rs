//! Processes of others, which end with their owner.
use std::{
    env,
    ffi::OsStr,
    fs,
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A server, or a guard that listens.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts it, and returns what `find` finds in a line that it writes on either stream.
    pub fn start<T>(mut command: Command, find: impl Fn(&str) -> Option<T>) -> (Self, T) {
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let running = Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
        // Else the pipe would not end with the process.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let found = lines.by_ref().find_map(|line| {
            let found = find(&line);
            said.push(line);
            found
        });
        // A full pipe would stop the process.
        thread::spawn(move || lines.for_each(drop));
        let found = found.unwrap_or_else(|| panic!("{command:?} has not started: {said:#?}"));
        (running, found)
    }

    /// Starts it, and waits until it accepts connections at its address; what it writes is lost.
    #[must_use]
    pub fn listening(mut command: Command, address: SocketAddr) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut running = Self(child);
        until(&format!("{command:?} listens"), || {
            assert!(!running.has_ended(), "{command:?} has ended");
            TcpStream::connect(address).ok()
        });
        running
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Asks it to end, and returns its exit code.
    #[must_use]
    pub fn terminate(mut self) -> Option<i32> {
        let status = Command::new("kill").arg(self.0.id().to_string()).status().unwrap();
        assert!(status.success());
        until("the process ends", || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes on whose command lines the mark is. One that has ended and is not yet waited for has none.
#[must_use]
pub fn with_mark(mark: &str) -> Vec<String> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    let lines = pids.map(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(mark)).collect()
}

/// The command of a client, which is killed when it takes too long.
pub fn client(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", &PATIENCE.as_secs().to_string()]).arg(program);
    command
}

/// A file of this package.
#[must_use]
pub fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// What `cargo xtask test` tells us.
#[must_use]
pub fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run cargo xtask test")).into()
}

/// A package from npm.
#[must_use]
pub fn npm(path: &str) -> PathBuf {
    variable("TR_PEERS").join("node_modules").join(path)
}

/// The interpreter that has PyPI's packages.
#[must_use]
pub fn python() -> PathBuf {
    variable("TR_PEERS").join("venv/bin/python")
}

/// Waits until `probe` finds something.
pub fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + PATIENCE;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(now() < deadline, "waited {PATIENCE:?} until {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// The time.
#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}
