//! A real guard around the demonstration's server, with metrics.
use crate::until;
use serde_json::{Value, json};
use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::channel,
    thread,
};
use tempfile::TempDir;

pub(crate) struct Guard {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where it serves metrics.
    pub(crate) metrics: String,
    calls: u64,
    folder: TempDir,
}

impl Guard {
    /// Starts one with this configuration and these options, which knows its tools.
    pub(crate) fn start(config: &str, options: &[&str]) -> Self {
        let guard = program();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stack.toml");
        fs::write(&file, config).unwrap();
        let mut child = Command::new(&guard)
            .args(["mcp", "--metrics", "127.0.0.1:0", "--config"])
            .arg(&file)
            .args(options)
            .arg("--")
            .env("XDG_STATE_HOME", folder.path())
            .arg(&guard)
            .args(["__serve", "--ledger"])
            .arg(folder.path().join("ledger"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let log = BufReader::new(child.stderr.take().unwrap());
        let (sender, addresses) = channel();
        thread::spawn(move || {
            // Read to its end, so that the guard can always write.
            for line in log.lines().map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).unwrap_or_default();
                if event["event"] == "metrics_listening" {
                    let _ = sender.send(event["address"].as_str().unwrap_or_default().to_owned());
                }
            }
        });
        let metrics = until("the guard serves metrics", || addresses.try_recv().ok());
        let output = BufReader::new(output);
        let mut guard = Self { child, input, output, metrics, calls: 0, folder };
        guard.request("tools/list", &json!({}));
        guard
    }

    /// Runs a command of the guard's for the same user, without a terminal; its exit code and what it prints.
    pub(crate) fn command(&self, words: &str) -> (Option<i32>, String) {
        let words = words.strip_prefix("tool-guard ").expect("a command of the guard's");
        let mut command = Command::new(program());
        command.args(words.split(' ')).env("XDG_STATE_HOME", self.folder.path());
        let output = command.env("HOME", self.folder.path()).stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }

    /// Makes a call, and waits for its answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
    }

    /// Makes a call under a key of its caller's.
    pub(crate) fn call_with(&mut self, tool: &str, arguments: &Value, key: &str) {
        let meta = json!({ "idempotencyKey": key });
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": meta }));
    }

    fn request(&mut self, method: &str, params: &Value) {
        self.calls += 1;
        let id = self.calls;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input, "{line}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the guard has ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return;
            }
        }
    }
}

pub(crate) fn program() -> OsString {
    env::var_os("TR_TOOL_GUARD").expect("TR_TOOL_GUARD names the guard: run cargo xtask test")
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
