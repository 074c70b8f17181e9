//! What is recorded of a plan's calls outlives the command.
use super::{Folder, count, text};
use crate::operator::by_token;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};
use tokio::time::Instant;

const GUARD: &str = env!("CARGO_BIN_EXE_tool-guard");

/// Reads what to pay, and pays it.
const TRIP: &str = r#"{"turn": "trip/1", "calls": [
    {"name": "itinerary", "tool": "read_file", "params": {"path": "plan.md"}},
    {"name": "booking", "tool": "charge_card", "params": {"order": {"$from": "itinerary", "at": "/content/0/text"}}}
]}"#;

const HANGS: &str = r#"{"calls": [
    {"name": "booking", "tool": "charge_card", "params": {"order": "o-1", "then": "hang"}, "timeout_ms": 30000}
]}"#;

impl Folder {
    /// A turn whose default place for records is this folder's.
    pub(crate) fn command(&self, plan: &str, options: &[&str]) -> Command {
        let plan = self.file("plan.json", plan);
        let mut turn = Command::new(GUARD);
        turn.env("XDG_STATE_HOME", self.0.join("state")).arg("turn").arg(plan).args(options);
        turn.args(["--", GUARD, "__serve", "--ledger"]).arg(self.ledger());
        turn
    }

    fn run(&self, plan: &str, options: &[&str]) -> (Output, String) {
        let output = self.command(plan, options).output().unwrap();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output, said)
    }

    fn settle(&self, id: &str, args: &[&str]) -> Option<i32> {
        let mut settle = Command::new(GUARD);
        by_token(settle.args(["records", "settle", id]), &self.0.join("state"));
        settle.args(args).output().unwrap().status.code()
    }

    fn charged(&self, order: &str) -> usize {
        count(&self.ledger(), &format!("charge_card {order}"))
    }
}

#[test]
fn a_run_with_a_name_pays_once_and_gives_the_same_answers() {
    let folder = Folder::new("run");
    let results = folder.0.join("results.json");
    let mut answers = Vec::new();
    for _ in 0..2 {
        let options = ["--run", "r-1", "--results", results.to_str().unwrap()];
        let (output, said) = folder.run(TRIP, &options);
        assert_eq!(output.status.code(), Some(0), "{said}");
        answers.push(fs::read_to_string(&results).unwrap());
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(folder.charged("contents of plan.md"), 1);
    let records = folder.0.join("state/tool-guard/records.db");
    assert!(records.exists() && !records.with_extension("db-wal").exists(), "it is closed");
    // The read too: whatever it says by now, the payment is the one that was made.
    assert_eq!(count(&folder.ledger(), "read_file plan.md"), 2, "one failed, and was tried again");
    let (output, said) = folder.run(TRIP, &["--run", "r-2"]);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(folder.charged("contents of plan.md"), 2);
}

#[test]
fn without_a_name_only_the_plan_s_own_keys_count() {
    let folder = Folder::new("keys");
    let plan = r#"{"calls": [
        {"name": "keyed", "tool": "charge_card", "params": {"order": "o-1"}, "idempotency_key": "order-1"},
        {"name": "plain", "tool": "charge_card", "params": {"order": "o-2"}}
    ]}"#;
    // A key of the plan's own holds in every run.
    for (options, plain) in [(&[][..], 1), (&[], 2), (&["--run", "r"], 3), (&["--run", "r"], 3)] {
        let (output, said) = folder.run(plan, options);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!((folder.charged("o-1"), folder.charged("o-2")), (1, plain));
    }
    let (output, said) = folder.run(plan, &["--records", "memory"]);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!((folder.charged("o-1"), folder.charged("o-2")), (2, 4));
    // Another server's calls are others.
    let (output, said) = folder.run(plan, &["--name", "shop"]);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(folder.charged("o-1"), 3);
}

#[test]
fn a_plan_without_keys_makes_no_file() {
    let folder = Folder::new("nofile");
    let (output, said) = folder.run(TRIP, &[]);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!folder.0.join("state").exists());
    let file = folder.0.join("calls.db");
    folder.run(TRIP, &["--records", file.to_str().unwrap()]);
    assert!(file.exists());
}

/// The record's ID in what was said.
fn record(said: &str) -> &str {
    let id = said.split_once("[record ").expect(said).1;
    &id[..12]
}

#[test]
fn a_payment_of_a_killed_turn_is_told_with_its_record_and_not_made_again() {
    let folder = Folder::new("killed");
    let options = ["--run", "r-1"];
    let mut turn = folder.command(HANGS, &options);
    let mut turn = turn.stdout(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while folder.charged("o-1") == 0 {
        assert!(Instant::now() < deadline, "the call was not made");
        thread::yield_now();
    }
    let id = Pid::from_raw(i32::try_from(turn.id()).unwrap()).unwrap();
    kill_process(id, Signal::KILL).unwrap();
    turn.wait().unwrap();

    let (output, said) = folder.run(HANGS, &options);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert_eq!(folder.charged("o-1"), 1, "{said}");
    assert!(said.contains("booking may have run [record "), "{said}");
    assert!(said.contains("With the same --run, a repeat of the plan"), "{said}");
    let short = record(&said).to_owned();

    let answer =
        folder.file("answer.json", r#"{"content":[{"type":"text","text":"paid by hand"}]}"#);
    let settled = folder.settle(&short, &["done", "--answer", answer.to_str().unwrap()]);
    assert_eq!(settled, Some(0));
    let results = folder.0.join("results.json");
    let options = ["--run", "r-1", "--results", results.to_str().unwrap()];
    let (output, said) = folder.run(HANGS, &options);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let results: Value = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
    assert_eq!(results["booking"]["content"][0]["text"], "paid by hand");
    assert_eq!(folder.charged("o-1"), 1);
}

#[test]
fn a_payment_that_was_given_up_is_told_with_its_record_and_settled_as_not_run_runs() {
    let folder = Folder::new("givenup");
    let plan = HANGS.replace("30000", "1500");
    let (output, said) = folder.run(&plan, &["--run", "r-1"]);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let short = record(&said).to_owned();
    let (_, again) = folder.run(&plan, &["--run", "r-1"]);
    assert_eq!((record(&again), folder.charged("o-1")), (&*short, 1));
    assert_eq!(folder.settle(&short, &["did-not-run"]), Some(0));
    folder.run(&plan, &["--run", "r-1"]);
    assert_eq!(folder.charged("o-1"), 2);
}

#[test]
fn an_end_that_is_not_recorded_is_told_with_its_record() {
    /// Answers `tools/call` when there is a file `$GO`.
    const SERVER: &str = r#"while read -r line; do
        case $line in *\"id\"*) ;; *) continue ;; esac
        id=${line#*\"id\":}; id=${id%%,*}
        case $line in
        *tools/list*) answer='{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}' ;;
        *tools/call*) : > "$GO.called"; while [ ! -e "$GO" ]; do sleep 0.02; done; answer='{"content":[]}' ;;
        *) answer='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        esac
        echo '{"jsonrpc":"2.0","id":'$id',"result":'$answer'}'
    done"#;
    let folder = Folder::new("unrecorded");
    let plan = folder.file("plan.json", r#"{"calls": [{"name": "bill", "tool": "pay"}]}"#);
    let (go, records) = (folder.0.join("go"), folder.0.join("calls.db"));
    let mut turn = Command::new(GUARD);
    turn.arg("turn").arg(plan).args(["--run", "r-1", "--records"]).arg(&records);
    turn.args(["--", "sh", "-c", SERVER]).env("GO", &go);
    let turn = turn.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !folder.0.join("go.called").exists() {
        assert!(Instant::now() < deadline, "the call was not made");
        thread::yield_now();
    }
    let other = rusqlite::Connection::open(&records).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    fs::write(&go, "").unwrap();
    let output = turn.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the end of bill is not recorded [record "), "{said}");
    assert_eq!(record(&said).len(), 12);
}

#[test]
fn a_key_means_the_same_call_in_a_turn_and_in_a_session_of_mcp() {
    let folder = Folder::new("both");
    let mut mcp = Command::new(GUARD);
    mcp.env("XDG_STATE_HOME", folder.0.join("state"))
        .args(["mcp", "--", GUARD, "__serve", "--ledger"]);
    let mut mcp =
        mcp.arg(folder.ledger()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"charge_card","arguments":{"order":"o-1"},"_meta":{"idempotencyKey":"order-1"}}}"#;
    let mut input = mcp.stdin.take().unwrap();
    writeln!(input, "{line}").unwrap();
    let mut said = String::new();
    BufReader::new(mcp.stdout.take().unwrap()).read_line(&mut said).unwrap();
    drop(input);
    mcp.wait().unwrap();
    assert!(said.contains("charged order o-1"), "{said}");
    let plan = r#"{"calls": [{"tool": "charge_card", "params": {"order": "o-1"}, "idempotency_key": "order-1"}]}"#;
    let (output, said) = folder.run(plan, &[]);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(folder.charged("o-1"), 1);
}

#[test]
fn other_params_in_the_same_run_are_refused() {
    let folder = Folder::new("conflict");
    let plan = |order: &str| {
        format!(
            r#"{{"calls": [{{"name": "pay", "tool": "charge_card", "params": {{"order": "{order}"}}}}]}}"#
        )
    };
    assert_eq!(folder.run(&plan("o-1"), &["--run", "r"]).0.status.code(), Some(0));
    let (output, said) = folder.run(&plan("o-2"), &["--run", "r", "--json"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(said.contains("idempotency_conflict"), "{said}");
    assert_eq!((folder.charged("o-1"), folder.charged("o-2")), (1, 0));
}

#[test]
fn a_run_with_a_name_needs_records_that_outlive_it() {
    let folder = Folder::new("nowhere");
    let (output, said) = folder.run(TRIP, &["--run", "r", "--records", "memory"]);
    assert!(output.status.code() == Some(2) && said.contains("remove --records memory"), "{said}");
    // A file where the folder would be.
    folder.file("state", "");
    let (output, said) = folder.run(TRIP, &["--run", "r"]);
    assert!(output.status.code() == Some(1) && said.contains("--records"), "{said}");
    let within = folder.0.join("state/calls.db");
    let (output, said) = folder.run(TRIP, &["--records", within.to_str().unwrap()]);
    assert!(output.status.code() == Some(1) && said.contains("cannot be kept in"), "{said}");
    let (output, said) = folder.run(TRIP, &["--run", ""]);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!folder.ledger().exists(), "no call was made");
}
