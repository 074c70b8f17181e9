//! The twelve servers: how each is started, on standard input and output and over HTTP.
use crate::agent::{here, variable};
use std::path::Path;

/// A server that others wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    /// Also the name of its record.
    pub(crate) name: &'static str,
    start: Start,
    /// What it is given. `FOLDER` stands for a folder of its own, `POSTGRES` for the URL of a database and `CHROMIUM`
    /// for the browser.
    words: &'static [&'static str],
    pub(crate) variables: &'static [(&'static str, &'static str)],
    http: Http,
}

#[derive(Clone, Copy, Debug)]
enum Start {
    /// Of npm's package.
    Node(&'static str),
    /// Of PyPI's, in this virtual environment.
    Python(&'static str, &'static str),
}

/// How it is served over HTTP; `PORT` stands for the port.
#[derive(Clone, Copy, Debug)]
enum Http {
    /// By npm's `supergateway`, with this server as its command.
    Bridge,
    /// By itself, with these further words and variables.
    Own(&'static [&'static str], &'static [(&'static str, &'static str)]),
}

impl Server {
    const fn new(name: &'static str, start: Start) -> Self {
        Self { name, start, words: &[], variables: &[], http: Http::Bridge }
    }

    pub(crate) const ALL: [Self; 12] = [
        Self {
            http: Http::Own(&["--transport", "http", "--port", "PORT"], &[]),
            ..Self::new("context7", Start::Node("context7-mcp"))
        },
        Self {
            words: &["--allow-private-ips"],
            ..Self::new("fetch", Start::Python("venv", "mcp-server-fetch"))
        },
        Self::new("git", Start::Python("venv", "mcp-server-git")),
        Self::new("github", Start::Node("mcp-server-github")),
        Self {
            variables: &[("MEMORY_FILE_PATH", "FOLDER/memory.jsonl")],
            ..Self::new("memory", Start::Node("mcp-server-memory"))
        },
        Self {
            // No database listens there.
            variables: &[
                (
                    "MDB_MCP_CONNECTION_STRING",
                    "mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=500",
                ),
                ("MDB_MCP_TELEMETRY", "disabled"),
            ],
            http: Http::Own(&[], &[("MDB_MCP_TRANSPORT", "http"), ("MDB_MCP_HTTP_PORT", "PORT")]),
            ..Self::new("mongodb", Start::Node("mongodb-mcp-server"))
        },
        Self {
            variables: &[("NOTION_TOKEN", "ntn_none")],
            http: Http::Own(
                &["--transport", "http", "--port", "PORT", "--unsafe-disable-auth"],
                &[],
            ),
            ..Self::new("notion", Start::Node("notion-mcp-server"))
        },
        Self {
            words: &[
                "--headless",
                "--no-sandbox",
                "--isolated",
                "--executable-path",
                "CHROMIUM",
                "--output-dir",
                "FOLDER/out",
            ],
            http: Http::Own(
                &["--host", "127.0.0.1", "--allowed-hosts", "*", "--port", "PORT"],
                &[],
            ),
            ..Self::new("playwright", Start::Node("playwright-mcp"))
        },
        Self { words: &["POSTGRES"], ..Self::new("postgres", Start::Node("mcp-server-postgres")) },
        Self::new("sequential-thinking", Start::Node("mcp-server-sequential-thinking")),
        Self {
            words: &["--db-path", "FOLDER/rows.db"],
            ..Self::new("sqlite", Start::Python("sqlite", "mcp-server-sqlite"))
        },
        Self {
            words: &["--local-timezone", "UTC"],
            ..Self::new("time", Start::Python("venv", "mcp-server-time"))
        },
    ];

    /// Its command line.
    pub(crate) fn command(&self) -> Vec<String> {
        let program = match self.start {
            Start::Node(program) => npm(program),
            Start::Python(venv, program) => {
                text(&variable("TR_SERVERS").join(venv).join("bin").join(program))
            }
        };
        [program].into_iter().chain(self.words.iter().map(|word| (*word).to_owned())).collect()
    }

    /// The command line that serves it over HTTP, and variables for it.
    pub(crate) fn over_http(
        &self,
        fill: impl Fn(&str) -> String,
    ) -> (Vec<String>, &'static [(&'static str, &'static str)]) {
        match self.http {
            Http::Own(words, variables) => {
                let further = words.iter().map(|word| (*word).to_owned());
                (self.command().into_iter().chain(further).collect(), variables)
            }
            Http::Bridge => {
                let command: Vec<_> = self.command().iter().map(|word| fill(word)).collect();
                let words = ["--outputTransport", "streamableHttp", "--stateful", "--port", "PORT"];
                let words = words.into_iter().chain(["--logLevel", "none", "--stdio"]);
                let words = words.map(str::to_owned).chain([command.join(" ")]);
                ([npm("supergateway")].into_iter().chain(words).collect(), &[])
            }
        }
    }
}

fn npm(program: &str) -> String {
    text(&variable("TR_SERVERS").join("node_modules/.bin").join(program))
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The recorded calls of a server, and its answers of then.
pub(crate) fn record(name: &str) -> String {
    let file = here("../../crates/tool-guard/tests/data/servers").join(format!("{name}.jsonl"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
