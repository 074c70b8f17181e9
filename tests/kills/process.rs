//! A guard as its client sees it: lines in, lines out, and an end; and processes that listen.
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A guard, or a client program with a guard of its own.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

/// The result of waiting for a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    Line(Value),
    Nothing,
    End,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                // The last line of a killed process may be torn: no client has read an answer then.
                let Ok(message) = serde_json::from_slice(&line) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines }
    }

    /// Sends lines at once; `false` if they are not read any more.
    pub(crate) fn send(&mut self, messages: &[Value]) -> bool {
        let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
        self.input.as_mut().is_some_and(|input| input.write_all(lines.as_bytes()).is_ok())
    }

    /// The next line, if one comes until then.
    pub(crate) fn hear(&self, until: Instant) -> Heard {
        match self.lines.recv_timeout(until.saturating_duration_since(now())) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Says goodbye, and waits for the end.
    pub(crate) fn leave(mut self) {
        self.input = None;
        until("the guard ends", || self.child.try_wait().unwrap());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A guard or a server that listens at an address.
#[derive(Debug)]
pub(crate) struct Listener {
    child: Child,
    address: String,
}

impl Listener {
    pub(crate) fn start(mut command: Command, address: &str) -> Self {
        let none = Stdio::null;
        let child = command.stdin(none()).stdout(none()).stderr(none()).spawn().unwrap();
        Self { child, address: address.to_owned() }
    }

    /// Waits until it takes connections.
    pub(crate) fn listen(&mut self) {
        until("it listens", || {
            let end = self.child.try_wait().unwrap();
            assert!(end.is_none(), "{}: {end:?}", self.address);
            TcpStream::connect(&self.address).ok()
        });
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn leave(mut self) {
        signal(self.child.id(), Signal::TERM);
        until("the guard ends", || self.child.try_wait().unwrap());
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends a process as nothing can be caught; it may have ended.
pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Waits until `probe` finds something.
pub(crate) fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + PATIENCE;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(now() < deadline, "waited {PATIENCE:?} until {what}");
        thread::park_timeout(Duration::from_millis(3));
    }
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
