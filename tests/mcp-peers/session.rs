//! A session with a server: lines go out as they are given, and every line that comes is kept.
use crate::{
    peer::{Mark, Server, Way},
    replies,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What was sent, and what came before the next was.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) sent: String,
    pub(crate) received: Vec<String>,
}

/// A running server, perhaps behind a guard.
#[derive(Debug)]
pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    mark: Mark,
    steps: Vec<Step>,
    last_id: u32,
}

impl Session {
    pub(crate) fn start(server: &Server, way: Way) -> Self {
        let mark = Mark::new();
        let mut command = server.command(way, &mark);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pipes.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                if output.read_until(b'\n', &mut line).unwrap_or(0) == 0
                    || sender.send(line).is_err()
                {
                    return;
                }
            }
        });
        Self { child, input, lines, mark, steps: Vec::new(), last_id: 0 }
    }

    /// Sends bytes as they are, and keeps what comes until `last` has. Meanwhile the server's own
    /// requests are answered.
    pub(crate) fn step(&mut self, bytes: &[u8], mut last: impl FnMut(&Value) -> bool) -> Value {
        self.steps.push(Step { sent: String::from_utf8_lossy(bytes).into(), received: Vec::new() });
        self.send(bytes);
        loop {
            let line = self.line();
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            self.steps.last_mut().unwrap().received.push(line);
            if let Some(reply) = replies::to(&message) {
                self.send(format!("{reply}\n").as_bytes());
            }
            if last(&message) {
                return message;
            }
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.step(format!("{request}\n").as_bytes(), |message| answers(message, &id))
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool again and again, and keeps the first answer that is the one.
    pub(crate) fn call_until(
        &mut self,
        tool: &str,
        arguments: Value,
        mut is_it: impl FnMut(&Value) -> bool,
    ) {
        let params = json!({ "name": tool, "arguments": arguments });
        let id = json!(format!("until-{}", self.steps.len()));
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        until("the answer is the one", || {
            let answer = self.step(format!("{call}\n").as_bytes(), |message| answers(message, &id));
            if is_it(&answer) {
                return Some(());
            }
            self.steps.pop();
            None
        });
    }

    /// Sends a line and a ping; what comes before the ping's answer is the line's.
    pub(crate) fn aside(&mut self, line: &[u8]) {
        let id = json!(format!("aside-{}", self.steps.len()));
        let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        let bytes = [line, format!("\n{ping}\n").as_bytes()].concat();
        self.step(&bytes, |message| answers(message, &id));
    }

    /// Sends a notification and waits for the message that it leads to.
    pub(crate) fn notify(&mut self, method: &str, params: Value, last: impl FnMut(&Value) -> bool) {
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.step(format!("{note}\n").as_bytes(), last);
    }

    /// Leaves as a client does, and waits for the end of all.
    pub(crate) fn leave(mut self) -> Vec<Step> {
        assert!(!self.mark.alive().is_empty(), "there is something that could be left behind");
        self.input = None;
        assert!(self.wait().success());
        self.mark.assert_gone();
        std::mem::take(&mut self.steps)
    }

    /// Ends it where it would stay for a while: its client sends SIGTERM then.
    pub(crate) fn terminate(mut self) -> Vec<Step> {
        self.signal("TERM");
        self.wait();
        self.mark.assert_gone();
        std::mem::take(&mut self.steps)
    }

    /// Kills the process that was started; its mark tells what is left.
    pub(crate) fn kill(mut self) -> Mark {
        self.signal("KILL");
        self.wait();
        self.mark.clone()
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    fn wait(&mut self) -> ExitStatus {
        until("the process ends", || self.child.try_wait().unwrap())
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|error| panic!("{error} after {:#?}", self.steps.last()));
        String::from_utf8(line).unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a message answers the request `id`.
pub(crate) fn answers(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message["id"] == *id
}

/// Waits until `probe` finds something.
pub(crate) fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + PATIENCE;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(now() < deadline, "waited {PATIENCE:?} until {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn now() -> Instant {
    Instant::now()
}
