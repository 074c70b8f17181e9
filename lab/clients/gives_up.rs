//! Clients on PyPI's `mcp` 1: when their limit is over they tell the server nothing, and their calls have no ids.
use crate::{
    agent::{here, variable},
    faults::{Running, start},
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command, thread};
use tempfile::TempDir;

/// A payment takes so many seconds, and the client waits for `limit`; it is asked for so often.
#[derive(Clone, Copy, Debug)]
struct Plan {
    client: &'static str,
    limit: u32,
    takes: u32,
    asks: u32,
    /// How often the client itself asks again.
    retries: u32,
    /// All at once.
    together: bool,
    /// Each time with another key in the arguments.
    keys: bool,
}

const WHOLE: Plan = Plan {
    client: "agents",
    limit: 5,
    takes: 7,
    asks: 2,
    retries: 0,
    together: false,
    keys: false,
};
const AGENT: Plan = Plan { asks: 1, retries: 2, ..WHOLE };
const SDK: Plan = Plan { client: "mcp", ..WHOLE };
/// No equal call has run for 4 s when it asks again.
const SHORT: Plan = Plan { limit: 1, takes: 3, asks: 3, ..SDK };

/// What is between client and command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    None,
    Stdio,
    Http,
}

/// The payments, and what the client saw at last.
fn payments(plan: Plan, form: Form, options: &[&str]) -> (usize, String) {
    let folder = tempfile::tempdir().unwrap();
    let [ledger, done] = ["ledger", "done"].map(|name| folder.path().join(name));
    let bank = ["node", here("slow_bank.cjs").to_str().unwrap()].map(str::to_owned);
    let guard = variable("TR_TOOL_GUARD").into_os_string().into_string().unwrap();
    let words = |more: &[&str]| {
        let front = [guard.as_str(), "mcp", "--log", "warn"];
        let all = front.iter().chain(options).chain(more).map(|word| (*word).to_owned());
        all.chain(bank.clone()).collect::<Vec<_>>()
    };
    let mut _listens: Option<Running> = None;
    let target = match form {
        Form::None => json!({ "command": bank }),
        Form::Stdio => json!({ "command": words(&["--"]) }),
        Form::Http => {
            let words = words(&["--listen", "127.0.0.1:0", "--"]);
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).env("LEDGER", &ledger).env("HOME", folder.path());
            let listens = |line: &str| {
                let event: Value = serde_json::from_str(line).ok()?;
                Some(event.get("address")?.as_str()?.to_owned())
            };
            let (running, address) = start(&mut command, listens);
            _listens = Some(running);
            json!({ "url": format!("http://{address}/mcp") })
        }
    };
    let python = Path::new(&variable("TR_CLIENTS")).join("python1/bin/python");
    let said = Command::new(python)
        .arg(here("gives_up.py"))
        .args([plan.client, &target.to_string()])
        .arg(
            json!({
                "limit": plan.limit, "takes": plan.takes, "asks": plan.asks, "retries": plan.retries,
                "together": plan.together, "keys": plan.keys,
            })
            .to_string(),
        )
        .env("LEDGER", &ledger)
        .env("DONE", &done)
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success(), "{plan:?} {form:?}: {}", String::from_utf8_lossy(&said.stderr));
    let last = text.lines().last().unwrap_or_default().to_owned();
    (fs::read_to_string(&ledger).unwrap().lines().count(), last)
}

#[test]
fn an_equal_call_that_has_run_for_long_is_joined() {
    thread::scope(|scope| {
        let cells = [
            (WHOLE, Form::Stdio),
            (WHOLE, Form::Http),
            (AGENT, Form::Stdio),
            (SDK, Form::Stdio),
            (SDK, Form::Http),
        ];
        for (plan, form) in cells {
            scope.spawn(move || {
                let (paid, last) = payments(plan, form, &[]);
                assert_eq!(paid, 1, "{plan:?} {form:?}: {last}");
                assert!(last.contains("receipt of 42"), "{plan:?} {form:?}: {last}");
                assert!(last.contains("[JOINED]"), "{plan:?} {form:?}: {last}");
            });
        }
    });
}

/// Each call has a guard of its own, or over HTTP a session.
#[test]
fn langchain_s_payment_that_takes_longer_is_made_once_where_its_order_is_declared() {
    let folder = tempfile::tempdir().unwrap();
    let declared = declare(&folder);
    let plan = Plan { client: "langchain", ..WHOLE };
    let cells: [(Form, &[&str], usize); 5] = [
        (Form::None, &[], 2),
        (Form::Stdio, &[], 2),
        (Form::Stdio, &declared, 1),
        (Form::Http, &[], 1),
        (Form::Http, &declared, 1),
    ];
    thread::scope(|scope| {
        for (form, options, expected) in cells {
            scope.spawn(move || {
                let (paid, last) = payments(plan, form, options);
                assert_eq!(paid, expected, "{form:?} {options:?}: {last}");
                let told = options.is_empty() || last.contains("may have run");
                assert!(told, "{form:?} {options:?}: {last}");
            });
        }
    });
}

/// What the table in docs/clients.md says of clients that the guard cannot help.
#[test]
fn without_the_guard_or_with_a_short_limit_each_asking_pays() {
    let once = ["--join-after", "900ms"];
    let cells: [(Plan, Form, &[&str], usize); 7] = [
        // Over HTTP its own retries come in sessions of their own.
        (AGENT, Form::Http, &[], 2),
        (WHOLE, Form::None, &[], 2),
        (AGENT, Form::None, &[], 3),
        (SDK, Form::None, &[], 2),
        (SHORT, Form::None, &[], 3),
        (SHORT, Form::Stdio, &[], 3),
        (SHORT, Form::Stdio, &once, 1),
    ];
    thread::scope(|scope| {
        for (plan, form, options, expected) in cells {
            scope.spawn(move || {
                let (paid, last) = payments(plan, form, options);
                assert_eq!(paid, expected, "{plan:?} {form:?}: {last}");
            });
        }
    });
}

/// The options by which the order says what is paid.
fn declare(folder: &TempDir) -> [&'static str; 2] {
    let catalog = folder.path().join("catalog.toml");
    let keys = "[tools.pay.keys]\nidentity = [\"/order\"]\nvolatile = [\"/idempotency_key\"]\n";
    fs::write(&catalog, keys).unwrap();
    ["--catalog", catalog.into_os_string().into_string().unwrap().leak()]
}

#[test]
fn a_payment_whose_order_is_declared_is_made_once_and_else_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let declared = declare(&folder);
    let quick = Plan { takes: 1, ..WHOLE };
    thread::scope(|scope| {
        for client in ["agents", "mcp", "langchain"] {
            for form in [Form::Stdio, Form::Http] {
                for plan in
                    [Plan { client, together: true, ..quick }, Plan { client, keys: true, ..quick }]
                {
                    scope.spawn(move || {
                        for (options, expected) in [(&declared[..], 1), (&[], 2)] {
                            let (paid, last) = payments(plan, form, options);
                            assert_eq!(paid, expected, "{plan:?} {form:?}: {last}");
                            // Each call of LangChain's has a session of its own, and here no credential.
                            let is_other = client == "langchain" && form == Form::Http;
                            let told = last.contains("receipt of 42")
                                || is_other && last.contains("The same call ");
                            assert!(told, "{plan:?} {form:?}: {last}");
                        }
                    });
                }
            }
        }
    });
}
