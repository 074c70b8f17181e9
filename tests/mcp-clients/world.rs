//! The servers of others, and the ways to them: directly and through the guard.
use crate::process::{Running, here, npm, python, variable, with_mark};
use serde_json::{Value, json};
use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// A server on standard input and output, and over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// npm's `server-everything`, on MCP's TypeScript SDK 1.
    Everything,
    /// Ours on PyPI's `fastmcp`, with a payment.
    Bank,
}

/// What the client speaks, and what the server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Stdio,
    Http,
    StdioCommand,
    StdioHttp,
    HttpCommand,
    HttpHttp,
}

impl Way {
    /// The first is the one that the others are compared with.
    pub(crate) const ALL: [Self; 6] = [
        Self::Stdio,
        Self::Http,
        Self::StdioCommand,
        Self::StdioHttp,
        Self::HttpCommand,
        Self::HttpHttp,
    ];
}

/// How a client reaches a server.
#[derive(Clone, Debug)]
pub(crate) enum Reached {
    Url(String),
    Command(Vec<String>),
}

/// A server's process over HTTP, and the guards that listen for clients.
struct Serving {
    url: String,
    server: Running,
    /// In front of a command, and of the URL.
    guards: [(Running, String); 2],
}

/// All that clients reach, with one file of records and one ledger.
pub(crate) struct World {
    folder: TempDir,
    mark: String,
    everything: Option<Serving>,
    bank: Option<Serving>,
}

impl World {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("mcp-clients-{}-", std::process::id());
        let mut world = Self { folder, mark, everything: None, bank: None };
        world.everything = Some(world.serving(Server::Everything));
        world.bank = Some(world.serving(Server::Bank));
        world
    }

    fn serving(&self, server: Server) -> Serving {
        let address = |line: &str| line.starts_with("http://").then(|| line.to_owned());
        let (running, url) = Running::start(self.command(&self.over_http(server)), address);
        let guard = |behind: &[String]| {
            let words = [self.guard(server, &["--listen", "127.0.0.1:0"]), behind.to_vec()];
            let (running, address) = Running::start(self.command(&words.concat()), listens);
            (running, format!("http://{address}/mcp"))
        };
        let behind_command = [vec!["--".to_owned()], self.over_stdio(server)].concat();
        let guards = [guard(&behind_command), guard(&["--upstream".into(), url.clone()])];
        Serving { url, server: running, guards }
    }

    /// The way to a server for one client.
    pub(crate) fn reach(&self, server: Server, way: Way) -> Reached {
        let serving = match server {
            Server::Everything => self.everything.as_ref().unwrap(),
            Server::Bank => self.bank.as_ref().unwrap(),
        };
        let [(_, before_command), (_, before_url)] = &serving.guards;
        match way {
            Way::Stdio => Reached::Command(self.over_stdio(server)),
            Way::Http => Reached::Url(serving.url.clone()),
            Way::StdioCommand => {
                // Without `--`, which some clients drop.
                Reached::Command([self.guard(server, &[]), self.over_stdio(server)].concat())
            }
            Way::StdioHttp => Reached::Command(self.guard(server, &["--upstream", &serving.url])),
            Way::HttpCommand => Reached::Url(before_command.clone()),
            Way::HttpHttp => Reached::Url(before_url.clone()),
        }
    }

    fn guard(&self, server: Server, options: &[&str]) -> Vec<String> {
        // Bears the mark where there is no command that does.
        let name = format!("{}{server:?}", self.mark);
        let guard = variable("TR_TOOL_GUARD").to_str().unwrap().to_owned();
        let words = ["mcp", "--name", &name].into_iter().chain(options.iter().copied());
        [guard].into_iter().chain(words.map(str::to_owned)).collect()
    }

    fn over_stdio(&self, server: Server) -> Vec<String> {
        match server {
            Server::Everything => self.node(&["stdio".into()]),
            Server::Bank => self.bank("stdio"),
        }
    }

    fn over_http(&self, server: Server) -> Vec<String> {
        match server {
            Server::Everything => {
                let mut words = self.node(&["streamableHttp".into()]);
                words.splice(2..2, ["--require".into(), text(here("servers/says.cjs"))]);
                words
            }
            Server::Bank => self.bank("http"),
        }
    }

    fn node(&self, args: &[String]) -> Vec<String> {
        let everything = npm("@modelcontextprotocol/server-everything/dist/index.js");
        // The title takes the place of the command line once the server runs.
        let words = ["node".into(), format!("--title={}", self.mark), text(everything)];
        [&words, args].concat()
    }

    fn bank(&self, how: &str) -> Vec<String> {
        vec![text(python()), text(here("servers/bank.py")), how.into(), self.mark.clone()]
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().envs(self.variables());
        command
    }

    /// The environment of all processes.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let folder = self.folder.path();
        vec![
            ("PATH", env::var_os("PATH").unwrap()),
            ("HOME", folder.into()),
            ("LEDGER", self.ledger_file().into()),
            // Chosen by the system.
            ("PORT", "0".into()),
            ("TR_PEERS", variable("TR_PEERS").into()),
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ]
    }

    fn ledger_file(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// How often a line is in the ledger.
    pub(crate) fn times(&self, line: &str) -> usize {
        let ledger = fs::read_to_string(self.ledger_file()).unwrap_or_default();
        ledger.lines().filter(|it| *it == line).count()
    }

    /// Ends all guards and servers: guards end as a signal asks, and nothing outlives them.
    pub(crate) fn end(mut self) {
        for serving in [self.everything.take(), self.bank.take()].into_iter().flatten() {
            for (guard, _) in serving.guards {
                assert_eq!(guard.terminate(), Some(128 + 15));
            }
            drop(serving.server);
        }
        let left = with_mark(&self.mark);
        assert!(left.is_empty(), "processes outlive their clients and guards: {left:#?}");
    }
}

impl Server {
    /// What a client does with it; the names of orders begin with `who`.
    pub(crate) fn script(self, who: &str) -> Value {
        let step = |kind: &str, tool: &str, arguments: Value| json!({ "do": kind, "tool": tool, "arguments": arguments });
        match self {
            Self::Everything => {
                let slow = "trigger-long-running-operation";
                json!([
                    { "do": "list" },
                    step("call", "echo", json!({ "message": "späß 🦀" })),
                    step("call", "get-structured-content", json!({ "location": "Chicago" })),
                    step("call", "get-sum", json!({ "a": "x" })),
                    step("call", "no such tool", json!({})),
                    step("progress", slow, json!({ "duration": 0.8, "steps": 4 })),
                    step("cancel", slow, json!({ "duration": 2, "steps": 20 })),
                    step("call", "get-sum", json!({ "a": 40, "b": 2 })),
                ])
            }
            Self::Bank => json!([
                { "do": "list" },
                step("call", "balance", json!({ "account": "a" })),
                step("call", "refuse", json!({ "order": who })),
                step("progress", "count", json!({ "order": who, "steps": 4, "pause": 0.2 })),
                step("cancel", "count", json!({ "order": who, "steps": 1000, "pause": 0.05 })),
                step("call", "pay", json!({ "order": who, "cents": 1 })),
            ]),
        }
    }
}

/// The address at which a guard listens, if this line of its log says so.
pub(crate) fn listens(line: &str) -> Option<String> {
    let event: Value = serde_json::from_str(line).ok()?;
    (event["event"] == "mcp_listening").then_some(())?;
    Some(event["address"].as_str()?.to_owned())
}

fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().into()
}
