//! Faults of a server over HTTP, played to SDK clients after it has made the payment.
use crate::{
    play::Seen,
    process::{Running, client, here, npm, python, variable},
    rust,
    world::listens,
};
use serde_json::{Value, json};
use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    process::Command,
    thread,
};
use tempfile::TempDir;

/// Within this, in milliseconds, a client behind the guard has its answer.
const BOUND: u64 = 15_000;

const FAULTS: [&str; 7] = ["404", "400", "401", "503", "drop", "cut without id", "cut with id"];

/// Who asks for the payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// PyPI's `mcp`.
    Mcp,
    /// MCP's TypeScript SDK.
    TypeScript1,
    TypeScript2,
    /// Rust's `rmcp`.
    Rmcp,
    /// npm's `mcp-remote`, between such a client on standard input and output and HTTP.
    McpRemote,
}

/// What is between it and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    None,
    HttpToHttp,
    StdioToHttp,
    /// `mcp-remote` as the guard's command.
    BeforeRemote,
}

/// A server, and what is paid there.
struct Faulty {
    folder: TempDir,
    base: String,
    _server: Running,
}

impl Faulty {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut node = Command::new("node");
        node.arg(here("../../clients/faulty.cjs")).env_remove("FAULT");
        node.env("LEDGER", folder.path().join("paid"));
        let address = |line: &str| line.strip_suffix("/mcp").map(str::to_owned);
        let (server, base) = Running::start(node, address);
        Self { folder, base, _server: server }
    }

    /// How often this order was paid.
    fn payments(&self, order: &str) -> usize {
        let ledger = fs::read_to_string(self.folder.path().join("paid")).unwrap_or_default();
        let params = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        params.filter(|params| params["arguments"]["of"] == order).count()
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("PATH", env::var_os("PATH").unwrap()),
            ("HOME", self.folder.path().into()),
            ("TR_PEERS", variable("TR_PEERS").into()),
        ]
    }

    /// Lets a client make a payment in each of these cells; what it saw, in the same order.
    fn pay(&self, asker: Asker, cells: &[(Form, &str)]) -> Vec<Paid> {
        let mut guards = Vec::new();
        let variables = self.variables();
        let variables: Value = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::from(value.to_str().unwrap())))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut targets = Vec::new();
        for (form, fault) in cells {
            let order = format!("{asker:?} {form:?} {fault}");
            let path = format!("/{}/{asker:?}-{form:?}", fault.replace(' ', "%20"));
            let url = format!("{}{path}", self.base);
            let guard = variable("TR_TOOL_GUARD").to_str().unwrap().to_owned();
            let remote = |url: &str| {
                let proxy = npm("mcp-remote/dist/proxy.js").to_str().unwrap().to_owned();
                json!(["node", proxy, url, "--transport", "http-only"])
            };
            let mut target = json!({ "name": order, "env": variables, "script": [
                { "do": "list" },
                { "do": "within", "tool": "pay", "arguments": { "of": order } },
            ] });
            let reached = if *form == Form::HttpToHttp {
                let mut command = Command::new(&guard);
                command.args(["mcp", "--listen", "127.0.0.1:0", "--upstream", &url]);
                command.env("HOME", self.folder.path()).env_remove("XDG_STATE_HOME");
                let (running, address) = Running::start(command, listens);
                guards.push(running);
                format!("http://{address}{path}")
            } else {
                url
            };
            match (form, asker) {
                (Form::StdioToHttp, _) => {
                    target["command"] = json!([guard, "mcp", "--upstream", reached]);
                }
                (Form::BeforeRemote, _) => {
                    let mut words = vec![json!(guard), json!("mcp"), json!("--")];
                    words.extend(remote(&reached).as_array().unwrap().iter().cloned());
                    target["command"] = words.into();
                }
                (_, Asker::McpRemote) => target["command"] = remote(&reached),
                _ => target["url"] = reached.into(),
            }
            targets.push(target);
        }
        let seen = match asker {
            Asker::Mcp => self.program(python(), "sdks/python.py", "mcp", &targets),
            Asker::TypeScript1 | Asker::McpRemote => {
                self.program("node", "sdks/typescript.cjs", "1", &targets)
            }
            Asker::TypeScript2 => self.program("node", "sdks/typescript.cjs", "2", &targets),
            Asker::Rmcp => rust::play(&targets),
        };
        let paid = seen.all("1 within");
        assert_eq!(paid.len(), cells.len(), "{asker:?}: {paid:?}");
        let paid = paid.into_iter().map(|(cell, seen)| Paid {
            payments: self.payments(&cell),
            cell,
            took: seen["took"].as_u64().unwrap(),
            answer: seen["seen"].clone(),
        });
        paid.collect()
    }

    fn program(
        &self,
        program: impl AsRef<OsStr>,
        script: &str,
        kind: &str,
        targets: &[Value],
    ) -> Seen {
        let mut command = client(program);
        command.arg(here(script)).arg(kind).arg(json!(targets).to_string());
        let output = command.env_clear().envs(self.variables()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script} {kind}: {printed}\n{said}");
        Seen::read(&printed)
    }
}

/// What came of a payment.
#[derive(Debug)]
struct Paid {
    cell: String,
    payments: usize,
    took: u64,
    answer: Value,
}

/// Every fault, in these forms.
fn cells(forms: &[Form]) -> Vec<(Form, &'static str)> {
    forms.iter().flat_map(|form| FAULTS.map(|fault| (*form, fault))).collect()
}

#[test]
fn behind_the_guard_a_payment_is_made_once_and_the_client_is_told() {
    let faulty = Faulty::start();
    let both = [Form::HttpToHttp, Form::StdioToHttp];
    thread::scope(|scope| {
        for (asker, forms) in [
            (Asker::Mcp, &both[..]),
            (Asker::TypeScript1, &both[..]),
            (Asker::TypeScript2, &both[..]),
            (Asker::Rmcp, &both[..]),
            // On standard input and output the guard takes its place.
            (Asker::McpRemote, &both[..1]),
        ] {
            let faulty = &faulty;
            scope.spawn(move || {
                for seen in faulty.pay(asker, &cells(forms)) {
                    let answer = seen.answer.to_string();
                    let told =
                        if seen.cell.ends_with("with id") { "receipt of" } else { "may have run" };
                    assert_eq!(seen.payments, 1, "{seen:?}");
                    assert!(seen.took < BOUND && answer.contains(told), "{seen:?}");
                }
            });
        }
    });
}

/// What the guard is for.
#[test]
fn without_it_clients_that_repeat_pay_twice() {
    let faulty = Faulty::start();
    // In front of `mcp-remote`, which repeats the call behind it, it cannot help.
    for (asker, form) in [
        (Asker::Rmcp, Form::None),
        (Asker::McpRemote, Form::None),
        (Asker::McpRemote, Form::BeforeRemote),
    ] {
        for seen in faulty.pay(asker, &[(form, "404")]) {
            assert_eq!(seen.payments, 2, "{seen:?}");
        }
    }
}
