//! The guard in each of its ways.
use crate::{
    client::{Call, Era, Http, Kind, Seen, Stdio},
    operator::by_token,
    upstream::Upstream,
    wire::until,
};
use serde_json::Value;
use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio as Pipe},
};
use tempfile::TempDir;

/// What is in front and behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    HttpHttp,
    StdioHttp,
    HttpStdio,
}

impl Way {
    pub(crate) const fn has_listener(self) -> bool {
        matches!(self, Self::HttpHttp | Self::HttpStdio)
    }
}

/// A folder with the records and logs of guards, and the server behind them.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) folder: TempDir,
    behind: Vec<OsString>,
    options: Vec<OsString>,
}

impl Shop {
    /// In front of a server over HTTP.
    pub(crate) fn over(upstream: &Upstream) -> Self {
        Self::at(&upstream.url())
    }

    /// In front of a server at an address where none needs to be.
    pub(crate) fn at(url: &str) -> Self {
        Self::new(["--upstream".into(), url.into()].into())
    }

    /// In front of a server on standard input and output, which writes payments into `ledger`.
    pub(crate) fn over_child() -> Self {
        let bank = Path::new(env!("CARGO_MANIFEST_DIR")).join("bank.cjs");
        let mut shop = Self::new(["--".into(), "node".into(), bank.into()].into());
        shop.behind.push(shop.path("ledger").into());
        shop
    }

    /// In front of a shell script on standard input and output, which finds the ledger in `$1`.
    pub(crate) fn over_script(script: &str) -> Self {
        let mut shop = Self::new(["--", "sh", "-c", script, "sh"].map(Into::into).into());
        shop.behind.push(shop.path("ledger").into());
        shop
    }

    fn new(behind: Vec<OsString>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, behind, options: Vec::new() }
    }

    /// More options of the guard.
    pub(crate) fn with<O: Into<OsString>>(mut self, options: impl IntoIterator<Item = O>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The guard's command; each start has a log of its own.
    fn command(&self, way: Way, start: &str) -> Command {
        let mut command = Command::new(guard());
        command.args(["mcp", "--log", "info", "--log-file"]).arg(self.path(start));
        let is_set = |name: &str| self.options.iter().any(|option| option == name);
        if !is_set("--records") {
            command.arg("--records").arg(self.path("records.db"));
        }
        if way.has_listener() {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(&self.options).args(&self.behind);
        command.stderr(File::create(self.path("said")).unwrap()).env("HOME", self.folder.path());
        command
            .env_remove("XDG_STATE_HOME")
            .env_remove("CLAUDE_CODE_SESSION_ID")
            .env_remove("CLAUDE_PROJECT_DIR");
        command
    }

    /// Starts a guard that listens.
    pub(crate) fn listen(&self, way: Way) -> Listening {
        let start = format!("log-{}", crate::client::random(8));
        let mut command = self.command(way, &start);
        let mut child = command.stdin(Pipe::null()).stdout(Pipe::null()).spawn().unwrap();
        let address = until("the guard listens", || {
            let text = fs::read_to_string(self.path(&start)).unwrap_or_default();
            let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut events = events.filter(|event| event["event"] == "mcp_listening");
            let end = child.try_wait().unwrap();
            assert!(end.is_none(), "{end:?}\n{text}\n{}", self.said());
            events.next().and_then(|event| Some(event["address"].as_str()?.to_owned()))
        });
        Listening { child, url: format!("http://{address}/mcp") }
    }

    /// Starts a guard and a client of this kind.
    pub(crate) fn open(&self, way: Way, kind: Kind, era: Era) -> Client {
        if way.has_listener() {
            let guard = self.listen(way);
            Client::Http { http: Http::open(&guard.url, kind, era), guard }
        } else {
            let start = format!("log-{}", crate::client::random(8));
            Client::Stdio(Stdio::open(self.command(way, &start), era))
        }
    }

    /// The command of a guard on standard input and output.
    pub(crate) fn stdio(&self) -> Command {
        self.command(Way::StdioHttp, "log-stdio")
    }

    /// What the guards said on standard error.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.path("said")).unwrap_or_default()
    }

    /// All logs of all guards.
    pub(crate) fn logs(&self) -> String {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap());
        let logs = files.filter(|file| file.file_name().to_string_lossy().starts_with("log-"));
        logs.map(|file| fs::read_to_string(file.path()).unwrap()).collect()
    }

    /// `tool-guard install claude-code --http`, in the shop's folder as home: exit code and output.
    pub(crate) fn install(&self) -> (i32, String) {
        let mut command = Command::new(guard());
        command.args(["install", "claude-code", "--http", "--scope", "user"]);
        command.env("HOME", self.folder.path()).env_remove("CLAUDE_CONFIG_DIR");
        let output = command.current_dir(self.folder.path()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8(text).unwrap())
    }

    /// `tool-guard records` on the shop's records: exit code and output.
    pub(crate) fn records(&self, words: &[&str]) -> (i32, String) {
        let mut command = Command::new(guard());
        command.arg("records").arg("--records").arg(self.path("records.db")).args(words);
        if words[0] == "settle" {
            by_token(&mut command, &self.path("state"));
        }
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8(text).unwrap())
    }
}

/// A guard that listens.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Listening {
    pub(crate) fn kill(&mut self) {
        // SIGKILL: nothing can be cleaned up.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client, and the guard that it has.
#[derive(Debug)]
pub(crate) enum Client {
    Http { http: Http, guard: Listening },
    Stdio(Stdio),
}

impl Client {
    /// Makes a call with all repeats of such a client; what it saw, in order.
    pub(crate) fn call(&mut self, call: &Call) -> Vec<Seen> {
        match self {
            Self::Http { http, .. } => http.call(call),
            Self::Stdio(stdio) => vec![stdio.once(call)],
        }
    }

    /// Sends a call once more, under a new JSON-RPC id.
    pub(crate) fn once(&mut self, call: &Call) -> Seen {
        match self {
            Self::Http { http, .. } => http.once(call),
            Self::Stdio(stdio) => stdio.once(call),
        }
    }

    pub(crate) fn kill_guard(&mut self) {
        match self {
            Self::Http { guard, .. } => guard.kill(),
            Self::Stdio(stdio) => {
                stdio.child.kill().unwrap();
                stdio.child.wait().unwrap();
            }
        }
    }
}

/// What `cargo xtask test` tells, or the guard of the same build.
fn guard() -> PathBuf {
    let beside = || {
        let tests = env::current_exe().unwrap();
        tests.parent().and_then(Path::parent).unwrap().join("tool-guard")
    };
    env::var_os("TR_TOOL_GUARD").map_or_else(beside, PathBuf::from)
}

/// Sends SIGTERM.
pub(crate) fn terminate(child: &Child) {
    let sent = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap();
    assert!(sent.success());
}
