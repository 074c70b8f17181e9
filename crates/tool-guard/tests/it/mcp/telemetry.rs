//! Metrics for a Prometheus scrape, and what events show.
use super::client::{BIN, Client, ledger, text, until};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::Command,
};
use tempfile::TempDir;

/// A guard around the demonstration's server, with variables of its environment.
pub(super) fn guarded(options: &[&str], vars: &[(&str, &str)]) -> Client {
    let ledger = ledger();
    let mut command = Command::new(BIN);
    command.arg("mcp").args(options).args(["--", BIN, "__serve", "--ledger"]).arg(&ledger);
    command.envs(vars.iter().copied());
    Client::start(command, ledger)
}

fn address(client: &mut Client) -> String {
    let of = |log: &str| {
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut said = events.filter(|event| event["event"] == "metrics_listening");
        said.next().map(|event| event["address"].as_str().unwrap().to_owned())
    };
    let log = client.log_until(|log| of(log).is_some());
    of(&log).unwrap()
}

/// Status and body of a request with these headers.
fn get(address: &str, path: &str, headers: &[&str]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut request = format!("GET {path} HTTP/1.1\r\n");
    for header in headers {
        request += &format!("{header}\r\n");
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn scrape(address: &str) -> String {
    let (status, body) = get(address, "/metrics", &["host: localhost"]);
    assert_eq!(status, 200, "{body}");
    body
}

pub(super) fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_scrape_shows_the_records_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.db");
    let records = records.to_str().unwrap();
    let mut client = guarded(&["--metrics", "localhost:0", "--records", records], &[]);
    let address = address(&mut client);
    client.list_tools();
    let meta = json!({ "idempotencyKey": "k" });
    let call = json!({ "name": "charge_card", "arguments": { "order": "7" }, "_meta": meta });
    client.ask_for(1, "tools/call", call);
    let shown = scrape(&address);
    for wanted in [
        r#"openclaw_tool_dedupe_cache_size{scope="session",tool="charge_card"} 1"#,
        r#"openclaw_tool_dedupe_ttl_seconds{state="done",tool="charge_card"} 86400"#,
    ] {
        assert!(shown.lines().any(|line| line == wanted), "{wanted}: {shown}");
    }
}

#[test]
fn a_scrape_shows_the_calls_of_each_mode() {
    for mode in ["observe", "shadow", "enforce"] {
        let mut client = guarded(&["--mode", mode, "--metrics", "localhost:0"], &[]);
        let address = address(&mut client);
        client.list_tools();
        let answer = text(&client.ask(1, "read_file", json!({ "path": "a" })));
        let is_enforced = mode == "enforce";
        assert_eq!(answer == "read ECONNRESET", !is_enforced, "{mode}: {answer}");
        for id in 2..=4 {
            client.ask(id, "read_file", json!({}));
        }
        let series = |name: &str| {
            let shown = scrape(&address);
            let of = shown.lines().filter(|line| line.starts_with(name));
            of.map(str::to_owned).collect::<Vec<_>>()
        };
        let calls = until("the last call is counted", || {
            let calls = series("openclaw_tool_calls_total{");
            let sum: f64 =
                calls.iter().map(|it| it.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum();
            (sum >= 4.0).then_some(calls)
        });
        assert!(
            calls.iter().all(|it| it.contains("tool=\"read_file\"") && !it.contains("otel_")),
            "{calls:?}"
        );
        let info = r#"openclaw_tool_info{effect="read_only",tool="read_file"} 1"#;
        assert_eq!(series("openclaw_tool_info"), [info]);
        let retries = series("openclaw_tool_retry_attempts_total{");
        assert_eq!(retries.is_empty(), !is_enforced, "{mode}: {retries:?}");
        let decisions = series("openclaw_tool_shadow_decisions_total{");
        assert_eq!(decisions.is_empty(), mode != "shadow", "{mode}: {decisions:?}");
        if mode == "shadow" {
            for decision in ["retry", "loop_block"] {
                let wanted = format!("decision=\"{decision}\"");
                assert!(decisions.iter().any(|it| it.contains(&wanted)), "{decisions:?}");
            }
            assert_eq!(series("openclaw_tool_shadow_calls_total{").len(), 1);
        }
    }
}

#[test]
fn a_foreign_page_and_a_foreign_machine_get_no_metrics() {
    let mut client = guarded(&["--metrics", "127.0.0.1:0"], &[]);
    let here = address(&mut client);
    assert_eq!(get(&here, "/metrics", &["host: evil.example"]).0, 403);
    assert_eq!(get(&here, "/metrics", &["host: localhost", "origin: http://evil.example"]).0, 403);
    assert_eq!(get(&here, "/", &["host: localhost"]).0, 404);
    assert_eq!(get(&here, "/metrics", &["host: 127.0.0.1"]).0, 200);
    // A load balancer sends what it likes, and learns nothing.
    assert_eq!(get(&here, "/healthz", &["host: evil.example"]), (200, "ok\n".into()));

    let folder = tempfile::tempdir().unwrap();
    let token = write(&folder, "token", "0123456789abcdef\n");
    let config = write(
        &folder,
        "stack.toml",
        &format!("[telemetry]\nmetrics = \"0.0.0.0:0\"\nmetrics_token_file = {token:?}\n"),
    );
    let mut client = guarded(&["--config", &config], &[]);
    let port = address(&mut client).parse::<SocketAddr>().unwrap().port();
    let here = format!("127.0.0.1:{port}");
    assert_eq!(get(&here, "/metrics", &["host: localhost"]).0, 403);
    let bearer = "authorization: Bearer 0123456789abcdef";
    assert_eq!(get(&here, "/metrics", &["host: any.example", bearer]).0, 200);
}

#[test]
fn settings_that_cannot_be_used_end_the_guard_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| write(&folder, name, text);
    let secret = "3f".repeat(31) + "zz";
    let bad_key = file("bad.key", &secret);
    for (config, reason) in [
        (
            "metrics = \"0.0.0.0:9464\"".to_owned(),
            "other machines can reach this address: give a token file",
        ),
        ("metrics = \"9464\"".into(), "expected an IP address and a port"),
        ("names = [\"prometheus\"]".into(), "/telemetry/names/0"),
        (format!("fingerprint_key_file = {bad_key:?}"), "expected 64 hexadecimal digits"),
        ("fingerprint_key_variable = \"TG_KEY\"".into(), "the variable TG_KEY is no key"),
        ("fingerprint_key_variable = \"TG_NONE\"".into(), "the variable TG_NONE has no text"),
    ] {
        let config = file("stack.toml", &format!("[telemetry]\n{config}\n"));
        let mut client = guarded(&["--config", &config], &[("TG_KEY", &secret)]);
        assert_eq!(client.wait().code(), Some(1), "{reason}");
        let said = client.stderr();
        assert!(said.contains(reason) && !said.contains(&secret), "{said}");
    }
}

#[test]
fn guards_with_one_key_show_the_same_hash_of_an_idempotency_key() {
    let folder = tempfile::tempdir().unwrap();
    let key = "3f".repeat(32);
    let file = write(&folder, "hash.key", &key);
    let by_file =
        write(&folder, "a.toml", &format!("[telemetry]\nfingerprint_key_file = {file:?}\n"));
    let by_variable = "[telemetry]\nfingerprint_key_variable = \"TG_KEY\"\n";
    let by_variable = write(&folder, "b.toml", by_variable);
    let hash = |config: &str| {
        let options =
            ["--config", config, "--log", "info", "--records", "memory", "--name", "shop"];
        let mut client = guarded(&options, &[("TG_KEY", &key)]);
        let params = json!({
            "name": "charge_card", "arguments": { "order": "o" }, "_meta": { "idempotencyKey": "k" },
        });
        client.ask_for(1, "tools/call", params);
        let log = client.log_until(|log| log.contains("tool_call_end"));
        assert!(!log.contains(&key));
        let end = log.lines().find(|line| line.contains("tool_call_end")).unwrap();
        let end: Value = serde_json::from_str(end).unwrap();
        end["idempotencyKeyHash"].as_str().unwrap().to_owned()
    };
    let hashes = [hash(&by_file), hash(&by_variable)];
    assert_eq!(hashes[0], hashes[1]);
    let unset = write(&folder, "c.toml", "[telemetry]\nnames = [\"gen_ai\"]\n");
    assert_ne!(hash(&unset), hashes[0], "a key of the process");
}

#[test]
fn only_the_values_of_listed_params_are_logged() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[telemetry]\nshow_params = { read_file = [\"path\"] }\n";
    let config = write(&folder, "stack.toml", config);
    let mut client = guarded(&["--config", &config, "--log", "info"], &[]);
    client.ask(1, "read_file", json!({ "path": "b.txt", "note": "private" }));
    let log = client.log_until(|log| log.contains("tool_call_end"));
    let start = log.lines().find(|line| line.contains("tool_call_start")).unwrap();
    let start: Value = serde_json::from_str(start).unwrap();
    let params = start["params"].as_str().unwrap();
    assert!(params.contains(r#"path:"b.txt""#) && params.contains("note:string(7)"), "{params}");
    assert!(!log.contains("private"));
}

/// Two windows of a client start the same line: the second one keeps its tools.
#[test]
fn an_address_that_another_guard_has_is_a_warning() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for option in ["--metrics", "--admin"] {
        let mut client = guarded(&[option, &address], &[]);
        client.list_tools();
        client.close();
        let log = client.stderr();
        assert!(log.contains("address_in_use") && log.contains(option), "{log}");
    }
}
