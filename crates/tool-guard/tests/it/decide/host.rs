//! A host of `tool-guard decide`, which checks every line by the schemas.
use crate::operator::by_token;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::LazyLock,
};
use tempfile::TempDir;

pub(crate) const GUARD: &str = env!("CARGO_BIN_EXE_tool-guard");

/// An id as providers draw them.
pub(crate) const STRONG: &str = "call_abcdEFGH1234567890ijKLmn";

static EVENT: LazyLock<Validator> = LazyLock::new(|| schema("decide-event", false));
static ANSWER: LazyLock<Validator> = LazyLock::new(|| schema("decide-answer", true));

/// A schema; `closed` if nothing may be there that it does not name.
fn schema(name: &str, closed: bool) -> Validator {
    let path = format!("../../schemas/{name}.schema.json");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    if closed {
        for form in schema["anyOf"].as_array_mut().unwrap() {
            form["additionalProperties"] = false.into();
        }
    }
    jsonschema::validator_for(&schema).unwrap()
}

/// A call that moves money.
pub(crate) fn pay(id: u64, call: &str) -> Value {
    json!({ "event": "before", "id": id, "tool": "pay", "params": { "cents": 500 }, "session": "s", "call": call })
}

/// Fails if an answer is not as the schema says, or has a member that it does not name.
pub(crate) fn is_described(answer: &str) -> Value {
    let answer = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    if let Err(error) = ANSWER.validate(&answer) {
        panic!("{error}\n{answer}");
    }
    answer
}

/// Where a host's records are.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn guard(&self, args: &[&str]) -> Command {
        let mut guard = Command::new(GUARD);
        guard.arg("decide").arg("--records").arg(self.path("records.db")).args(args);
        guard.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        guard
    }

    /// Settles a record, as a person would.
    pub(crate) fn settle(&self, record: &str, how: &str) {
        let mut command = Command::new(GUARD);
        command.arg("records").arg("--records").arg(self.path("records.db"));
        by_token(command.args(["settle", record, how]), &self.path("state"));
        let settled = command.output().unwrap();
        assert!(settled.status.success(), "{settled:?}");
    }
}

/// A running guard, and the pipes to it.
pub(crate) struct Host {
    guard: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Host {
    pub(crate) fn start(folder: &Folder, args: &[&str]) -> Self {
        let mut guard = folder.guard(args).spawn().unwrap();
        let (input, output) = (guard.stdin.take(), guard.stdout.take().unwrap());
        Self { guard, input, output: BufReader::new(output) }
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        is_described(&line)
    }

    /// Sends a line that is no event, perhaps; returns the answer.
    pub(crate) fn raw(&mut self, line: &str) -> Value {
        self.write(&format!("{line}\n"));
        self.read()
    }

    /// Sends an event; returns the answer, which has its id.
    pub(crate) fn ask(&mut self, event: &Value) -> Value {
        if let Err(error) = EVENT.validate(event) {
            panic!("{error}\n{event}");
        }
        let answer = self.raw(&event.to_string());
        assert_eq!(answer["id"], event["id"]);
        answer
    }

    pub(crate) fn kill(&mut self) {
        self.guard.kill().unwrap();
        self.guard.wait().unwrap();
    }

    /// Closes the guard's input; returns its exit code.
    pub(crate) fn end(&mut self) -> i32 {
        self.input = None;
        self.guard.wait().unwrap().code().unwrap()
    }

    /// A guard that does not start: its exit code, and what it says.
    pub(crate) fn refused(folder: &Folder, args: &[&str]) -> (i32, String) {
        let output = folder.guard(args).stderr(Stdio::piped()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}
