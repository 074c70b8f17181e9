//! An MCP client that sees every byte.
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// After which a guard gives a call up that never ends: long enough for a server on a busy machine
/// to have begun it.
pub(crate) const HANGS: &str = "2s";
pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_tool-guard");

/// A process that speaks MCP, and the ledger of what its tools did.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    /// What it logs, once somebody wants to know.
    log: Option<Receiver<String>>,
    ledger: PathBuf,
}

/// A fresh path for a ledger.
pub(crate) fn ledger() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("ledger-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

impl Client {
    /// Talks to the demonstration's server without a guard.
    pub(crate) fn direct() -> Self {
        let ledger = ledger();
        let mut command = Command::new(BIN);
        command.arg("__serve").arg("--ledger").arg(&ledger);
        Self::start(command, ledger)
    }

    /// Talks to the demonstration's server through a guard with these options.
    pub(crate) fn guarded(options: &[&str]) -> Self {
        let ledger = ledger();
        let mut command = Command::new(BIN);
        command.arg("mcp").args(options).args(["--", BIN, "__serve", "--ledger"]).arg(&ledger);
        Self::start(command, ledger)
    }

    /// Talks to a shell script through a guard with these options.
    pub(crate) fn script(options: &[&str], script: &str) -> Self {
        let ledger = ledger();
        let mut command = Command::new(BIN);
        command.arg("mcp").args(options).args(["--", "sh", "-c", script]).env("LEDGER", &ledger);
        Self::start(command, ledger)
    }

    pub(crate) fn start(mut command: Command, ledger: PathBuf) -> Self {
        let mut child = command
            .env("XDG_STATE_HOME", ledger.with_extension("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
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
        Self { child, input, lines, log: None, ledger }
    }

    /// The user's state folder, as the guard knows it.
    pub(crate) fn state(&self) -> PathBuf {
        self.ledger.with_extension("state")
    }

    /// The file in which its server notes what it does.
    pub(crate) fn ledger(&self) -> &Path {
        &self.ledger
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.unwrap(), signal).unwrap();
    }

    /// Sends bytes as they are.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }),
        );
    }

    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.request(id, "tools/call", json!({ "name": tool, "arguments": arguments }));
    }

    /// Calls a tool, and waits for its answer.
    pub(crate) fn ask(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        self.ask_for(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    pub(crate) fn ask_for(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id = id.into();
        self.request(id.clone(), method, params);
        self.answer(id)
    }

    /// The next line as it came.
    pub(crate) fn line(&mut self) -> Vec<u8> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line in {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the output has ended: {}", self.stderr())
            }
        }
    }

    pub(crate) fn receive(&mut self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line)
            .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&line)))
    }

    /// The answer to `id`, whatever comes before it.
    pub(crate) fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            let message = self.receive();
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
        }
    }

    /// Lets the list of tools pass by.
    pub(crate) fn list_tools(&mut self) {
        self.ask_for("list", "tools/list", json!({}));
    }

    /// Whether nothing more comes before the answer to a ping.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.request("quiet?", "ping", json!({}));
        self.receive()["id"] == "quiet?"
    }

    /// What the tools did.
    pub(crate) fn executions(&self, what: &str) -> usize {
        let ledger = fs::read_to_string(&self.ledger).unwrap_or_default();
        ledger.lines().filter(|line| line.starts_with(what)).count()
    }

    /// Says that nothing more will come.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Leaves, and waits for the end.
    pub(crate) fn leave(mut self) -> ExitStatus {
        self.input = None;
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("the process ends", || self.child.try_wait().unwrap())
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What it has logged since somebody last asked, once that is enough.
    pub(crate) fn log_until(&mut self, enough: impl Fn(&str) -> bool) -> String {
        let stderr = self.child.stderr.take();
        let lines = self.log.get_or_insert_with(|| {
            let mut stderr = BufReader::new(stderr.expect("taken once"));
            let (sender, lines) = channel();
            thread::spawn(move || {
                let mut line = String::new();
                while stderr.read_line(&mut line).unwrap_or(0) > 0
                    && sender.send(std::mem::take(&mut line)).is_ok()
                {}
            });
            lines
        });
        let mut log = String::new();
        while !enough(&log) {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => log += &line,
                Err(_) => panic!("this is all that it logged: {log}"),
            }
        }
        log
    }

    /// What it logged, once it has ended.
    pub(crate) fn stderr(&mut self) -> String {
        self.input = None;
        let _ = self.child.kill();
        self.child
            .stderr
            .take()
            .map_or_else(String::new, |stderr| std::io::read_to_string(stderr).unwrap())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.ledger);
        let _ = fs::remove_dir_all(self.ledger.with_extension("state"));
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
        thread::park_timeout(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The text that the model sees.
pub(crate) fn text(answer: &Value) -> String {
    let blocks = answer["result"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
