//! Twelve servers of others, three clients of others: the same answers with and without the guard, over each way.
use crate::{
    agent::{here, variable},
    servers::{
        catalog::{Server, record},
        compare::compare,
        pages::Pages,
    },
};
use mcp_clients::{
    play::Seen,
    process::Running,
    sdk::{Order, Sdk},
};
use serde_json::{Value, json};
use std::{
    env,
    ffi::OsString,
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicU16, Ordering},
    },
    thread,
};
use tempfile::TempDir;
use tr_testkit::postgres;

mod catalog;
mod compare;
mod pages;

const CLIENTS: [Sdk; 3] = [Sdk::Mcp, Sdk::TypeScript2, Sdk::Rmcp];

/// What the client speaks, and what the server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Stdio,
    StdioCommand,
    HttpCommand,
    Http,
    StdioHttp,
    HttpHttp,
}

/// Each way without the guard, and those with it to the same server.
const WAYS: [(Way, [Way; 2]); 2] = [
    (Way::Stdio, [Way::StdioCommand, Way::HttpCommand]),
    (Way::Http, [Way::StdioHttp, Way::HttpHttp]),
];

/// One server's places. They are the same in each run, since answers name them; what is in them is made afresh.
struct Room {
    server: Server,
    folder: TempDir,
    pages: Pages,
    database: Option<postgres::Server>,
}

impl Room {
    fn new(server: Server) -> Self {
        let database = (server.name == "postgres").then(|| {
            let database = postgres::Server::start().unwrap();
            let rows = "CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2)";
            run(Command::new("psql").args([&database.url(), "--quiet", "--command", rows]));
            database
        });
        Self { server, folder: tempfile::tempdir().unwrap(), pages: Pages::start(), database }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn reset(&self) {
        let _ = fs::remove_dir_all(self.state());
        fs::create_dir_all(self.state()).unwrap();
        self.pages.reset();
        if self.server.name == "git" {
            repository(&self.state().join("repo"));
        }
    }

    fn fill(&self, text: &str, port: u16) -> String {
        let database = self.database.as_ref().map(postgres::Server::url).unwrap_or_default();
        text.replace("FOLDER", self.state().to_str().unwrap())
            .replace("POSTGRES", &database)
            .replace("CHROMIUM", &chromium())
            .replace("PORT", &port.to_string())
    }

    fn variables(
        &self,
        further: &[(&'static str, &'static str)],
        port: u16,
    ) -> Vec<(&'static str, OsString)> {
        let offline = format!("--require={}", here("offline.cjs").display());
        let mut variables = vec![
            ("PATH", env::var_os("PATH").unwrap()),
            ("HOME", self.state().into()),
            ("TZ", "UTC".into()),
            ("TR_PEERS", variable("TR_PEERS").into()),
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
            ("NODE_OPTIONS", offline.into()),
        ];
        let further = self.server.variables.iter().chain(further);
        variables.extend(further.map(|(name, value)| (*name, self.fill(value, port).into())));
        variables
    }

    fn script(&self) -> Value {
        let repository = self.state().join("repo");
        let record = record(self.server.name)
            .replace("127.0.0.1:8097", &self.pages.address.to_string())
            .replace("/srv/repo", repository.to_str().unwrap());
        let lines = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let calls = lines.filter(|line| line["method"] == "tools/call").map(|line| {
            let params = &line["params"];
            json!({ "do": "call", "tool": params["name"], "arguments": params["arguments"] })
        });
        [json!({ "do": "list" })].into_iter().chain(calls).collect()
    }

    /// What a client sees of a server that has just been started.
    fn play(&self, sdk: Sdk, way: Way) -> Seen {
        self.reset();
        let variables = self.variables(&[], 0);
        let mut running = Vec::new();
        let start = |words: &[String], variables: Vec<(&'static str, OsString)>, port| {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).env_clear().envs(variables);
            Running::listening(command, SocketAddr::from(([127, 0, 0, 1], port)))
        };
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let guard = words(&[variable("TR_TOOL_GUARD").to_str().unwrap(), "mcp"]);
        // What is behind the guard, and its URL.
        let (behind, url) = if matches!(way, Way::Http | Way::StdioHttp | Way::HttpHttp) {
            let port = free_port();
            let (words_of_server, further) = self.server.over_http(|word| self.fill(word, port));
            let filled: Vec<_> = words_of_server.iter().map(|word| self.fill(word, port)).collect();
            running.push(start(&filled, self.variables(further, port), port));
            let url = format!("http://127.0.0.1:{port}/mcp");
            (words(&["--upstream", &url]), url)
        } else {
            let command = self.server.command().iter().map(|word| self.fill(word, 0)).collect();
            ([words(&["--"]), command].concat(), String::new())
        };
        let mut target = json!({ "name": format!("{way:?}"), "env": {}, "script": self.script() });
        for (name, value) in &variables {
            target["env"][*name] = value.to_str().unwrap().into();
        }
        match way {
            Way::Stdio => target["command"] = behind[1..].into(),
            Way::StdioCommand | Way::StdioHttp => {
                target["command"] = [guard, behind].concat().into();
            }
            Way::Http => target["url"] = url.into(),
            Way::HttpCommand | Way::HttpHttp => {
                let port = free_port();
                let listen = words(&["--listen", &format!("127.0.0.1:{port}")]);
                running.push(start(&[guard, listen, behind].concat(), variables.clone(), port));
                target["url"] = format!("http://127.0.0.1:{port}/mcp").into();
            }
        }
        let seen = sdk.play(&[target], &variables, Order::InTurn);
        // The guard first. Bridges and servers end in ways of their own.
        while let Some(process) = running.pop() {
            let code = process.terminate();
            assert!(running.is_empty() || code == Some(128 + 15), "{way:?}: {code:?}");
        }
        seen
    }
}

/// A port that is free, below those that the system gives to connections.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Two hundred for each of up to a hundred processes.
    let first = 12_000 + u16::try_from(std::process::id() % 100).unwrap() * 200;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 200;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Debian's.
fn chromium() -> String {
    let path = env::var_os("PATH").unwrap();
    let mut places = env::split_paths(&path).map(|folder| folder.join("chromium"));
    let found = places.find(|file| file.is_file());
    found.expect("chromium is on the PATH: run cargo lab peers").to_str().unwrap().to_owned()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// One commit, and a file that is not in it.
fn repository(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args([
            "-C",
            folder.to_str().unwrap(),
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
        ]);
        git.args(words).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        for date in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            git.env(date, "2026-01-01T00:00:00Z");
        }
        run(&mut git);
    };
    git(&["init", "--quiet", "--initial-branch", "master"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
    fs::write(folder.join("a.txt"), "a\n").unwrap();
}

/// `TR_ONLY_SERVER=NAME` plays one of them.
#[test]
fn twelve_servers_answer_three_clients_as_without_the_guard() {
    let only = env::var("TR_ONLY_SERVER").ok();
    let servers =
        Server::ALL.into_iter().filter(|it| only.as_ref().is_none_or(|name| it.name == name));
    let servers = Mutex::new(servers);
    let differing = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let Some(server) = servers.lock().unwrap().next() else { return };
                    let found = played(server);
                    differing.lock().unwrap().extend(found);
                }
            });
        }
    });
    let differing = differing.into_inner().unwrap();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// How many of the calls on a way fail.
fn failures(seen: &Seen, way: Way) -> usize {
    let on = seen.on(&format!("{way:?}"));
    let mut calls = on.iter().filter(|(step, _)| step.ends_with("call")).peekable();
    assert!(calls.peek().is_some(), "{way:?}: {seen:?}");
    calls.filter(|(_, answer)| answer["content"].is_null() || answer["isError"] == true).count()
}

/// How many did when they were recorded: the server does what it did then.
fn recorded_failures(server: Server) -> usize {
    let record = record(server.name);
    let answers = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    answers.filter(|it| it["error"].is_object() || it["result"]["isError"] == true).count()
}

/// Where a server's answers differ behind the guard.
fn played(server: Server) -> Vec<String> {
    let room = Room::new(server);
    let mut differing = Vec::new();
    for sdk in CLIENTS {
        for (direct, guarded) in WAYS {
            let alone = room.play(sdk, direct);
            assert_eq!(
                failures(&alone, direct),
                recorded_failures(server),
                "{server:?} {direct:?}: {alone:?}"
            );
            for way in guarded {
                let behind = room.play(sdk, way);
                let names = [direct, way].map(|way| format!("{way:?}"));
                let names = names.each_ref().map(|name| &**name);
                let compared = compare(server.name, &alone, &behind, names);
                let cell = format!("{} {sdk:?} {way:?}", server.name);
                println!(
                    "{cell}: {} differ, notes on {} successes and {} failures",
                    compared.differing.len(),
                    compared.noted,
                    compared.warned
                );
                differing.extend(compared.differing.into_iter().map(|it| format!("{cell}, {it}")));
            }
        }
    }
    differing
}
