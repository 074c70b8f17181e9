//! The server's process: how it starts, ends, and never outlives the guard.
use super::client::{BIN, Client, HANGS, ledger, text, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

#[test]
fn a_server_that_cannot_start_is_a_clear_error() {
    let output = Command::new(BIN).args(["mcp", "--", "/no/such/server"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(127), "{said}");
    assert!(said.contains("cannot start /no/such/server: No such file"), "{said}");
    assert!(output.stdout.is_empty());
    for (command, advice) in [
        ("no-such-server --port 1", "write the command and its arguments as separate words"),
        ("no-such-server", "install it, or give its full path"),
    ] {
        let output = Command::new(BIN).args(["mcp", "--", command]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(advice) && output.status.code() == Some(127), "{said}");
    }
}

#[test]
fn without_a_command_the_usage_is_shown() {
    let output = Command::new(BIN).arg("mcp").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("Usage: tool-guard mcp"));
}

#[test]
fn a_slip_in_a_subcommand_is_shown() {
    for (args, wanted) in [
        (&["mpc", "--", "true"][..], "a similar subcommand exists: 'mcp'"),
        (&["session", "chek"], "'check'"),
        (&["records", "lst"], "a similar subcommand exists: 'list'"),
        (&["npx", "x"], "tip: to guard an MCP server, write `mcp --` before its command"),
    ] {
        let output = Command::new(BIN).args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(wanted), "{said}");
    }
}

#[test]
fn after_the_server_ended_all_is_answered_at_once() {
    let mut client = Client::guarded(&["--on-server-exit", "stay"]);
    client.call(2, "slow", json!({ "ms": 60_000 }));
    client.call(1, "charge_card", json!({ "order": "o", "then": "crash" }));
    for _ in 1..=2 {
        let said = text(&client.receive());
        assert!(said.contains("may have run"), "{said}");
    }

    let answer = client.ask(4, "charge_card", json!({ "order": "o" }));
    assert_eq!(answer["result"]["_meta"]["tool-reliability/error"]["ran"], "no");
    assert_eq!(client.ask_for(5, "ping", json!({}))["error"]["code"], -32000);
    assert_eq!(client.executions("charge_card"), 1);
    assert_eq!(client.leave().code(), Some(70));
}

#[test]
fn a_guard_whose_server_has_ended_ends_with_its_code() {
    for (script, code) in
        [("read call; exit 3", 3), ("read call; kill -9 $$", 137), ("read call; exit 0", 0)]
    {
        let mut client = Client::script(&[], script);
        let answer = client.ask(1, "any", json!({}));
        assert!(text(&answer).contains("may have run"), "{answer}");
        let meta = &answer["result"]["_meta"]["tool-reliability/error"];
        assert_eq!((&meta["code"], &meta["ran"]), (&json!("server_gone"), &json!("unknown")));
        // The client still holds its end open.
        assert_eq!(client.wait().code(), Some(code), "{script}");
        let told = format!(r#""event":"server_exited","code":{code}"#);
        let log = client.stderr();
        assert!(log.contains(&told), "{log}");
    }
    // Also where nothing is in flight.
    assert_eq!(Client::script(&[], "exit 7").wait().code(), Some(7));
    assert_eq!(Client::script(&["--mode", "off"], "exit 7").wait().code(), Some(7));
}

/// Five failures have opened the breaker; the end of the server is told all the same, and at once.
#[test]
fn a_dead_server_is_named_whatever_the_breakers_say() {
    let fails = r#"
        n=0; while [ $n -lt 5 ]; do read -r line; n=$((n+1))
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"Service unavailable (503)\"}],\"isError\":true}}"
        done; read -r line; id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}""#;
    let mut client = Client::script(&["--on-server-exit=stay"], fails);
    for id in 1..=5 {
        client.ask(id, "rate", json!({ "n": id }));
    }
    let answer = client.ask(6, "rate", json!({ "n": 6 }));
    let meta = &answer["result"]["_meta"]["tool-reliability/error"];
    assert_eq!(meta["code"], "circuit_open", "{answer}");
    assert!(text(&answer).contains("(this call did not run, but earlier calls"), "{answer}");
    client.ask_for(7, "ping", json!({}));
    let gone = |answer: &serde_json::Value| text(answer).contains("The MCP server has ended");
    // It is about to end, which takes its time on a busy machine.
    let mut id = 7;
    until("its end is told", || {
        id += 1;
        gone(&client.ask(id, "rate", json!({ "n": id }))).then_some(())
    });
    for id in id + 1..=id + 32 {
        let answer = client.ask(id, "rate", json!({ "n": id }));
        assert!(gone(&answer), "{answer}");
        let meta = &answer["result"]["_meta"]["tool-reliability/error"];
        assert_eq!((&meta["code"], &meta["ran"]), (&json!("server_gone"), &json!("no")));
        assert_eq!(answer["result"]["content"].as_array().unwrap().len(), 1);
    }
}

/// A server that starts another process, and ignores that its input ends.
const FAMILY: &str = r#"sleep 1000 & echo $! >>"$LEDGER"; echo $$ >>"$LEDGER"; trap '' HUP
    echo '{"jsonrpc":"2.0","method":"up"}'; wait"#;

fn family(path: &Path) -> Vec<u32> {
    fs::read_to_string(path).unwrap().lines().map(|pid| pid.parse().unwrap()).collect()
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|state| state != 'Z')
}

/// A guard before a server with a helper, and the processes of both.
fn guarded_family() -> (Client, Vec<u32>) {
    let path = ledger();
    let mut command = Command::new(BIN);
    command.args(["mcp", "--", "sh", "-c", FAMILY]).env("LEDGER", &path);
    let mut client = Client::start(command, path.clone());
    assert_eq!(client.receive()["method"], "up");
    (client, family(&path))
}

#[test]
fn a_killed_guard_leaves_no_orphans() {
    let (mut client, pids) = guarded_family();
    assert!(pids.len() == 2 && pids.iter().all(|pid| is_alive(*pid)));
    client.kill();
    until("all of its processes are gone", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
}

/// The processes that `parent` has started.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}

/// Before a guard is asked for its supervisor, that must have begun to watch over the server.
fn supervisor(guard: u32) -> u32 {
    let supervisor = children(guard)[0];
    until("it is watched", || (children(supervisor).len() == 2).then_some(()));
    supervisor
}

#[test]
fn a_killed_supervisor_leaves_no_orphans() {
    for guard_too in [false, true] {
        let (mut client, pids) = guarded_family();
        let supervisor = i32::try_from(supervisor(client.id())).unwrap();
        let supervisor = Pid::from_raw(supervisor).unwrap();
        // It learns of the guard's end, and does not get round to anything.
        kill_process(supervisor, Signal::STOP).unwrap();
        if guard_too {
            client.kill();
        }
        kill_process(supervisor, Signal::KILL).unwrap();
        let gone = || pids.iter().all(|pid| !is_alive(*pid)).then_some(());
        until("all of its processes are gone", gone);
    }
}

/// Each of the three ends with the others, and leaves nobody behind.
#[test]
fn who_watches_ends_with_the_server() {
    let (mut client, pids) = guarded_family();
    let supervisor = supervisor(client.id());
    let watched = children(supervisor);
    assert!(pids.iter().filter(|pid| watched.contains(pid)).count() == 1, "{watched:?}");
    client.signal(Signal::TERM);
    client.wait();
    let gone = || watched.iter().chain(&pids).all(|pid| !is_alive(*pid)).then_some(());
    until("all of them are gone", gone);
}

/// What the client has open, and did not keep from its children, is not the server's.
#[test]
fn a_server_inherits_no_open_files() {
    let path = ledger();
    fs::write(&path, "").unwrap();
    let server = r#"if [ -e /dev/fd/7 ]; then what=open; else what=closed; fi
        echo "{\"jsonrpc\":\"2.0\",\"method\":\"$what\"}"; read -r line"#;
    let script = r#"exec 7<"$LEDGER"; [ -e /dev/fd/7 ] || exit 9; exec "$0" mcp -- sh -c "$1""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, BIN, server]).env("LEDGER", &path);
    let mut client = Client::start(command, path);
    assert_eq!(client.receive()["method"], "closed");
}

#[test]
fn a_guard_that_a_signal_ends_ends_its_server_first() {
    // Where there is nothing to read again, SIGHUP is such a signal.
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let (mut client, pids) = guarded_family();
        client.signal(signal);
        assert_eq!(client.wait().code(), Some(code));
        let gone = || pids.iter().all(|pid| !is_alive(*pid)).then_some(());
        until("all of its processes are gone", gone);
    }
}

#[test]
fn a_server_that_ends_takes_its_helpers_along() {
    // The helper holds the server's output open, so that only its end is the output's.
    let script = r#"sleep 1000 & echo $! >>"$LEDGER"; read call; exit 3"#;
    let path = ledger();
    let mut command = Command::new(BIN);
    command.args(["mcp", "--", "sh", "-c", script]).env("LEDGER", &path);
    let mut client = Client::start(command, path.clone());
    assert!(text(&client.ask(1, "any", json!({}))).contains("may have run"));
    let pids = family(&path);
    until("its helper is gone", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
    assert_eq!(client.leave().code(), Some(3));
}

#[test]
fn a_server_that_closes_its_output_is_gone() {
    let stay = ["--on-server-exit=stay"];
    let mut client = Client::script(&stay, "read call; exec >/dev/null; read more");
    assert!(text(&client.ask(1, "any", json!({}))).contains("may have run"));
    assert!(text(&client.ask(2, "any", json!({}))).contains("did not run"));
}

#[test]
fn the_exit_code_is_the_servers_only_if_it_ended_first() {
    // Whether the server is quick or slow to end, the client left first.
    for script in ["cat >/dev/null; exit 3", "cat >/dev/null; exec >&-; sleep 0.3; exit 3"] {
        assert_eq!(Client::script(&[], script).leave().code(), Some(0), "{script}");
    }
}

#[test]
fn a_server_that_dies_in_the_middle_of_an_answer_is_answered_for() {
    let script = r#"read call; printf '{"jsonrpc":"2.0","id":1,"resu'; exit 1"#;
    let mut client = Client::script(&[], script);
    client.call(1, "any", json!({}));
    assert_eq!(client.line(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"resu\n");
    assert!(text(&client.answer(1)).contains("may have run"));
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_call_ends_it_all() {
    let mut client = Client::guarded(&["--timeout", HANGS]);
    client.list_tools();
    client.call(1, "charge_card", json!({ "order": "o", "then": "hang" }));
    until("the call has begun", || (client.executions("charge_card") == 1).then_some(()));
    assert!(client.leave().success());
}

/// The server ends when it has answered, as it would without the guard.
#[test]
fn what_a_client_has_asked_before_it_left_is_answered_in_every_mode() {
    // Longer than the guard waits for a server that has nothing to answer.
    let script =
        r#"read -r line; cat >/dev/null; sleep 6; echo '{"jsonrpc":"2.0","id":1,"result":{}}'"#;
    let mut clients = ["off", "observe", "shadow", "enforce"]
        .map(|mode| Client::script(&["--mode", mode], script));
    for client in &mut clients {
        client.request(1, "resources/read", json!({}));
        client.close();
    }
    for client in &mut clients {
        assert_eq!(client.answer(1)["result"], json!({}));
        assert_eq!(client.wait().code(), Some(0));
    }
}

/// A process that the server leaves behind may hold its output open.
#[test]
fn a_server_is_dead_when_its_process_is() {
    let script = "setsid sleep 60 & read -r line; exit 3";
    let mut client = Client::script(&["--timeout", "50s"], script);
    let said = client.ask(1, "pay", json!({ "order": 1 })).to_string();
    assert!(said.contains("server_gone"), "not a timeout: {said}");
    assert_eq!(client.wait().code(), Some(3));
}

/// What comes while the server cleans up is answered, too.
#[test]
fn a_server_that_has_closed_its_output_is_gone() {
    let script = "read -r line; exec >&-; read -r line; exit 3";
    let mut client = Client::script(&[], script);
    for id in 1..=3 {
        let said = client.ask(id, "pay", json!({ "order": id })).to_string();
        assert!(said.contains("server_gone"), "{said}");
    }
}

/// Unless it is heard, the signal that comes with it ends a process.
#[test]
fn a_file_that_may_not_grow_fails_calls_and_does_not_end_the_guard() {
    let ledger = ledger();
    let mut command = Command::new("sh");
    // In blocks of 512 bytes: room for the tables, and not for many payments.
    command.args(["-c", "ulimit -f 400; exec \"$@\"", "sh", BIN, "mcp", "--", BIN, "__serve"]);
    command.arg("--ledger").arg(&ledger);
    let mut client = Client::start(command, ledger);
    let refused = (1..2_000).find(|id| {
        let meta = json!({ "idempotencyKey": format!("k{id}") });
        let arguments = json!({ "order": format!("o-{id}"), "pad": "x".repeat(2_000) });
        let params = json!({ "name": "charge_card", "arguments": arguments, "_meta": meta });
        let answer = client.ask_for(*id, "tools/call", params);
        answer["result"]["_meta"]["tool-reliability/error"]["code"] == "store_unavailable"
    });
    let refused = refused.expect("the file is full at some time");
    assert_eq!(client.executions("charge_card"), refused as usize - 1);
    client.ask_for("ping", "ping", json!({}));
    assert_eq!(client.leave().code(), Some(0));
}

#[test]
fn a_client_that_leaves_and_reads_no_answer_does_not_keep_the_guard() {
    let script = r#"read -r line
        printf '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"'
        head -c 1000000 /dev/zero | tr '\0' x; printf '"}]}}\n'; exec cat >/dev/null"#;
    let mut command = Command::new(BIN);
    command.args(["mcp", "--records", "memory", "--timeout", "1s", "--max-timeout", "1s"]);
    command.args(["--", "sh", "-c", script]).stderr(Stdio::null());
    let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "big", "arguments": {} } });
    // More than a pipe holds comes back, and nobody reads it.
    let mut input = guard.stdin.take().unwrap();
    input.write_all(format!("{call}\n").as_bytes()).unwrap();
    drop(input);
    let ended = until("the guard has ended", || guard.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}
