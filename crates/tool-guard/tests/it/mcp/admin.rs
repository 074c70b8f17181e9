//! The guard's configuration, and its admin listener.
use super::client::{BIN, Client, text};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Output},
    sync::mpsc::channel,
    time::Duration,
};

/// A file that goes with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("{}-{name}", std::process::id());
        let file = Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        file.write(text);
        file
    }

    fn write(&self, text: &str) {
        fs::write(&self.0, text).unwrap();
        fs::set_permissions(&self.0, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Where the guard listens, and the header with its token.
type Operator = (String, String);

fn operator(client: &mut Client) -> Operator {
    let is_there = |line: &Value| line["event"] == "admin_listening";
    let events = |log: &str| -> Vec<Value> {
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let log = client.log_until(|log| events(log).iter().any(is_there));
    let (mut named, events) = (events(&log).into_iter(), events(&log));
    let event = events.into_iter().find(is_there).unwrap();
    let named = named.find(|line| line["event"] == "admin_token").unwrap();
    let token = fs::read_to_string(named["file"].as_str().unwrap()).unwrap();
    (event["address"].as_str().unwrap().into(), format!("authorization: Bearer {}", token.trim()))
}

/// Status and body of a request with these headers.
fn http(address: &str, method: &str, headers: &[&str], body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut request = format!("{method} /debug/tool-reliability HTTP/1.1\r\n");
    for header in headers {
        request += &format!("{header}\r\n");
    }
    request += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

const HERE: &str = "host: localhost";
const JSON: &str = "content-type: application/json";

fn order((address, token): &Operator, order: Value) -> (u16, Value) {
    http(address, "POST", &[HERE, JSON, token], &order.to_string())
}

fn look((address, token): &Operator) -> (u16, Value) {
    http(address, "GET", &[HERE, token], "")
}

/// Connections that say little, ever so slowly, and stay: the operator's comes after all of them.
#[test]
fn two_hundred_slow_connections_keep_no_operator_out() {
    for said in [
        &b""[..],
        b"GET /debug/tool-rel",
        b"POST /debug/tool-reliability HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    ] {
        let mut client = Client::guarded(&["--admin", "127.0.0.1:0"]);
        let operator = operator(&mut client);
        let address = operator.0.clone();
        let slow: Vec<_> = (0..200)
            .map(|_| {
                let mut stream = TcpStream::connect(&address).unwrap();
                // One that was sent away before it has spoken is not there any more.
                let _ = stream.write_all(said);
                stream
            })
            .collect();
        let (sender, answered) = channel();
        let asking = std::thread::spawn(move || sender.send(look(&operator).0));
        // Well before the first of them would be given up for its silence.
        assert_eq!(answered.recv_timeout(Duration::from_secs(5)), Ok(200));
        asking.join().unwrap().unwrap();
        drop(slow);
    }
}

#[test]
fn an_operator_looks_at_the_guard_and_forces_a_breaker_open() {
    let mut client = Client::guarded(&["--admin", "127.0.0.1:0"]);
    let operator = operator(&mut client);
    assert_eq!(text(&client.ask(1, "charge_card", json!({ "order": "a" }))), "charged order a");
    let (status, state) = look(&operator);
    assert_eq!((status, &state["on"]), (200, &json!(true)));
    assert!(state["breakers"].as_array().unwrap().iter().any(|it| it["name"] == "charge_card"));

    let (status, now) =
        order(&operator, json!({ "action": "force_open", "breaker": "charge_card" }));
    assert_eq!((status, &now["state"]), (200, &json!("FORCED_OPEN")));
    let refused = client.ask(2, "charge_card", json!({ "order": "b" }));
    assert_eq!(refused["result"]["_meta"]["tool-reliability/error"]["code"], "circuit_open");
    assert_eq!(client.executions("charge_card"), 1);
    order(&operator, json!({ "action": "reset", "breaker": "charge_card" }));
    assert_eq!(text(&client.ask(3, "charge_card", json!({ "order": "c" }))), "charged order c");
}

#[test]
fn a_web_page_is_refused() {
    let mut client = Client::guarded(&["--admin", "127.0.0.1:0"]);
    let operator = operator(&mut client);
    let off = r#"{"action":"switch","on":false}"#;
    for headers in [
        &[HERE, JSON, &operator.1, "origin: https://attacker.example"][..],
        &[HERE, JSON, &operator.1, "sec-fetch-site: cross-site"],
    ] {
        assert_eq!(http(&operator.0, "POST", headers, off).0, 403, "{headers:?}");
    }
    let form = [HERE, "content-type: text/plain", &operator.1];
    assert_eq!(http(&operator.0, "POST", &form, off).0, 415);
    assert_eq!(look(&operator).1["on"], true);
}

#[test]
fn a_configuration_is_read_again_while_calls_go_on() {
    let config =
        File::new("again.toml", "[breaker]\nconsecutive = 1\n[rollout]\nmode = \"enforce\"\n");
    let mut client = Client::guarded(&["--admin", "127.0.0.1:0", "--config", config.path()]);
    let operator = operator(&mut client);
    client.list_tools();
    client.ask(1, "read_file", json!({ "path": "a" }));
    assert!(client.executions("read_file a") >= 1);
    order(&operator, json!({ "action": "force_open", "breaker": "read_file" }));

    config.write("[rollout]\ntools = { read_file = \"off\" }\nmod = 5\n");
    let (status, said) = order(&operator, json!({ "action": "reload" }));
    assert_eq!(status, 422);
    let said = said["error"].as_str().unwrap();
    assert!(said.contains("line 3, column 7: /rollout/mod") && said.contains("\"mode\""), "{said}");

    config.write("[rollout]\ntools = { read_file = \"off\" }\n");
    let (status, said) = order(&operator, json!({ "action": "reload" }));
    assert_eq!((status, &said["needsRestart"]), (200, &json!(["breaker"])));
    // Off for this tool: its breaker is not asked.
    let before = client.executions("read_file b");
    client.ask(2, "read_file", json!({ "path": "b" }));
    assert_eq!(client.executions("read_file b"), before + 1);
}

#[test]
fn a_hangup_has_the_files_read_again() {
    let catalog = File::new("hangup.toml", "[tools.read_file]\neffect = \"mutating\"\n");
    let mut client = Client::guarded(&["--catalog", catalog.path()]);
    let read = |client: &mut Client, id: u64, path: &str| {
        client.ask(id, "read_file", json!({ "path": path }))["result"]["isError"] == true
    };
    assert!(read(&mut client, 1, "a"), "the first read of a file fails, and is not retried");

    catalog.write("[tools.read_file]\neffect = \"read only\"\n");
    client.signal(Signal::HUP);
    let said = client.log_until(|log| log.contains("config_not_reloaded"));
    assert!(said.contains("read_only"), "{said}");
    assert!(read(&mut client, 2, "b"), "what held before still holds");

    catalog.write("[tools.read_file]\neffect = \"read_only\"\n");
    client.signal(Signal::HUP);
    client.log_until(|log| log.contains("config_reloaded"));
    assert!(!read(&mut client, 3, "c"));
    assert!(client.leave().success());
}

fn started(arguments: &[&str], vars: &[(&str, &str)]) -> Output {
    let mut command = Command::new(BIN);
    command.arg("mcp").args(arguments).args(["--", "true"]).envs(vars.iter().copied());
    command.output().unwrap()
}

#[test]
fn everything_that_is_wrong_is_said_before_the_server_is_started() {
    let config = File::new("bad.json", r#"{"rolout": {}, "breaker": {"window": 0}}"#);
    let vars =
        [("TOOL_RELIABILITY_ENABLED", "flase"), ("TOOL_RELIABILITY__RETRY__ATTEMPTS", "many")];
    let output = started(&["--config", config.path(), "--catalog", "/no/such.toml"], &vars);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for fault in [
        "TOOL_RELIABILITY_ENABLED: expected \"on\" or \"off\", found \"flase\"",
        "TOOL_RELIABILITY__RETRY__ATTEMPTS: expected a whole number from 1 to 1000, found \"many\"",
        "line 1, column 12: /rolout",
        "/breaker/window: expected a whole number from 1 to 10000, found 0",
        "cannot read /no/such.toml",
    ] {
        assert!(said.contains(fault), "{fault} in {said}");
    }
}

#[test]
fn limits_that_contradict_each_other_are_named() {
    let output = started(&["--max-timeout", "1s", "--timeout", "20s"], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--max-timeout 1s is shorter than the timeout 20s"), "{said}");
}

#[test]
fn others_reach_it_with_a_token_only() {
    let output = started(&["--admin", "0.0.0.0:0"], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--admin-token-file"), "{said}");
    let weak = File::new("weak-token", "short\n");
    let with = ["--admin", "127.0.0.1:0", "--admin-token-file", weak.path()];
    let said = String::from_utf8(started(&with, &[]).stderr).unwrap();
    assert!(said.contains("16 or more"), "{said}");

    let token = File::new("token", "0123456789abcdef\n");
    fs::set_permissions(&token.0, fs::Permissions::from_mode(0o644)).unwrap();
    let with = ["--admin", "127.0.0.1:0", "--admin-token-file", token.path()];
    let said = String::from_utf8(started(&with, &[]).stderr).unwrap();
    assert!(said.contains("other users can read it: run chmod 600 on it"), "{said}");
    token.write("0123456789abcdef\n");
    let with = ["--admin", "127.0.0.1:0", "--admin-token-file", token.path()];
    let mut client = Client::guarded(&with);
    let (address, given_in_log) = operator(&mut client);
    assert_eq!(given_in_log, "authorization: Bearer 0123456789abcdef");
    assert!(!client.state().join("tool-guard/admin-token").exists(), "it needs none of its own");
    assert_eq!(http(&address, "GET", &[HERE], "").0, 403);
    let given = ["host: anything", "authorization: Bearer 0123456789abcdef"];
    assert_eq!(http(&address, "GET", &given, "").0, 200);
}

/// The other subcommands that have the page.
#[test]
fn the_pages_of_decide_and_serve_need_the_token_too() {
    let config =
        File::new("serve.toml", "[tools.a]\ncommand = [\"true\"]\neffect = \"read_only\"\n");
    for (name, args) in [
        ("decide", &["--records", "memory"][..]),
        ("serve", &["--records", "memory", "--listen", "127.0.0.1:0", "--config", config.path()]),
    ] {
        let state = File::new(&format!("{name}-state"), "");
        fs::remove_file(&state.0).unwrap();
        let mut command = Command::new(BIN);
        command.arg(name).args(args).args(["--admin", "127.0.0.1:0", "--log", "warn"]);
        let client = &mut Client::start(command, state.0.clone());
        let operator = operator(client);
        assert_eq!(look(&operator).0, 200, "{name}");
        let off = json!({ "action": "switch", "on": false });
        let without = (operator.0.clone(), "accept: */*".to_owned());
        assert_eq!((look(&without).0, order(&without, off.clone()).0), (403, 403), "{name}");
        assert_eq!(look(&operator).1["on"], true, "{name}");
        assert_eq!(order(&operator, off).0, 200, "{name}");
    }
}

/// A program on this machine, such as the one that a coding agent starts, has no token.
#[test]
fn every_order_and_every_look_needs_the_token_of_the_state_folder() {
    let mut client = Client::guarded(&["--admin", "127.0.0.1:0"]);
    let operator = operator(&mut client);
    let file = client.state().join("tool-guard/admin-token");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    client.ask(1, "charge_card", json!({ "order": "a" }));
    let key = "0".repeat(64);
    let orders = [
        json!({ "action": "force_open", "breaker": "charge_card" }),
        json!({ "action": "reset", "breaker": "charge_card" }),
        json!({ "action": "disable", "breaker": "charge_card" }),
        json!({ "action": "shadow", "breaker": "charge_card" }),
        json!({ "action": "enforce", "breaker": "charge_card" }),
        json!({ "action": "flush", "tool": "charge_card" }),
        json!({ "action": "settle", "key": key, "outcome": "did_not_run", "force": true }),
        json!({ "action": "switch", "on": true }),
        json!({ "action": "reload" }),
    ];
    let wrong = format!("authorization: Bearer {}", "0".repeat(64));
    for token in ["accept: */*", "authorization: Bearer", &wrong] {
        let without = (operator.0.clone(), token.to_owned());
        for refused in &orders {
            assert_eq!(order(&without, refused.clone()).0, 403, "{refused}");
        }
        assert_eq!(look(&without).0, 403);
    }
    for given in orders {
        let status = order(&operator, given.clone()).0;
        assert!([200, 404].contains(&status), "{given}: {status}");
    }
    assert_eq!(look(&operator).0, 200);
}
