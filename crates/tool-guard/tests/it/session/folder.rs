//! A folder with sessions, and the command that is run in it.
use super::schema::is_described;
use serde_json::Value;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// A session in which a filter cut the call away and the result stayed.
pub(crate) const ORPHANED: &str = r#"{"model":"claude","system":"Be brief.","messages":[
  {"role":"user","content":"Pay order 42, please."},
  {"role":"assistant","content":[{"type":"text","text":"I pay it."}]},
  {"role":"user","content":[
    {"type":"tool_result","tool_use_id":"toolu_01A","content":"receipt ch_1"},
    {"type":"text","text":"Did it work?"}
  ]},
  {"role":"assistant","content":"Yes."}
],"max_tokens":1024}
"#;

/// A session with which nothing is wrong.
pub(crate) const FINE: &str = r#"[
{"role":"user","content":"Read a.txt."},
{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{"n":1.0}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"hello"}]},
{"role":"assistant","content":"It says hello."}
]
"#;

/// A folder of its own, removed at the end.
pub(crate) struct Folder(TempDir);

/// What the command did.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("tool-guard-session-").tempdir().unwrap())
    }

    /// A folder with this file.
    pub(crate) fn with(name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        folder.write(name, bytes);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of all files in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The one file whose name begins so.
    pub(crate) fn only(&self, beginning: &str) -> String {
        let names = self.names();
        let mut found = names.iter().filter(|name| name.starts_with(beginning));
        let one = found.next().unwrap_or_else(|| panic!("{beginning} is not in {names:?}"));
        assert_eq!(found.next(), None, "{names:?}");
        one.clone()
    }

    /// `tool-guard session ARGUMENTS…`, run in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(guard());
        command.arg("session").args(arguments).current_dir(self.0.path());
        command
    }

    /// The same of a user whose home the folder is.
    pub(crate) fn at_home(&self, arguments: &[&str]) -> Done {
        let mut command = self.command(arguments);
        for agent in
            ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR", "PI_CODING_AGENT_DIR"]
        {
            command.env_remove(agent);
        }
        Done::of(&command.env("HOME", self.path("")).output().unwrap())
    }

    pub(crate) fn session(&self, arguments: &[&str]) -> Done {
        Done::of(&self.command(arguments).output().unwrap())
    }

    /// Runs it; it ends with this code.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, arguments: &[&str]) -> Done {
        let done = self.session(arguments);
        assert_eq!(done.code, code, "{}{}", done.out, done.err);
        done
    }

    /// The same with `--json`: an object for each line, as the schema describes it, and the exit
    /// code.
    pub(crate) fn json(&self, arguments: &[&str]) -> (Vec<Value>, i32) {
        let done = self.session(&[arguments, &["--json"]].concat());
        assert_eq!(done.err, "", "all that is to be said is in the JSON");
        let lines = done.out.lines().map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<_> = lines.collect();
        lines.iter().for_each(is_described);
        (lines, done.code)
    }

    /// The objects of a command that ends with this code.
    #[track_caller]
    pub(crate) fn json_of(&self, code: i32, arguments: &[&str]) -> Vec<Value> {
        let (lines, ended) = self.json(arguments);
        assert_eq!(ended, code, "{lines:?}");
        lines
    }
}

impl Done {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let code = output.status.code().expect("it was not killed");
        Self { code, out: text(&output.stdout), err: text(&output.stderr) }
    }
}

pub(crate) fn guard() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tool-guard"))
}
