//! Metrics for a Prometheus scrape, and metrics and spans for a collector.
use super::client::{BIN, Client, ledger, now, text, until};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::Command,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tokio_rustls::rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tr_testkit::tls::{Authority, Issued};

/// A guard around the demonstration's server, with variables of its environment.
fn guarded(options: &[&str], vars: &[(&str, &str)]) -> Client {
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

fn write(folder: &TempDir, name: &str, text: &str) -> String {
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

/// A collector: what it is sent, as paths and bodies.
fn collector(answers: bool, own: Option<&Issued>) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scheme = if own.is_some() { "https" } else { "http" };
    let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
    let tls = own.map(|own| {
        let chain = vec![CertificateDer::from_pem_slice(own.certificate().as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(own.key().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap())
    });
    let (sender, requests) = channel();
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            if !answers {
                // Kept open, and never read.
                open.push(stream);
                continue;
            }
            let (sender, tls) = (sender.clone(), tls.clone());
            thread::spawn(move || {
                let mut stream: Box<dyn Io> = match tls {
                    Some(tls) => {
                        Box::new(StreamOwned::new(ServerConnection::new(tls).unwrap(), stream))
                    }
                    None => Box::new(stream),
                };
                while let Some(request) = request(&mut stream) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    if sender.send(request).is_err() || stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (endpoint, requests)
}

trait Io: Read + Write {}
impl<T: Read + Write> Io for T {}

fn request(stream: &mut dyn Io) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?.to_lowercase();
    let path = head.split(' ').nth(1)?.to_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    Some((path, body))
}

#[test]
fn a_collector_gets_the_spans_and_metrics_of_the_last_call() {
    let (endpoint, requests) = collector(true, None);
    let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), ("OTEL_SERVICE_NAME", "shop-guard")];
    let mut client = guarded(&[], &vars);
    client.list_tools();
    client.ask(1, "read_file", json!({ "path": "a" }));
    assert!(client.leave().success());
    let sent: Vec<_> = requests.try_iter().collect();
    let body = |path: &str| {
        let of = sent.iter().filter(|(to, _)| to == path);
        of.map(|(_, body)| String::from_utf8_lossy(body).into_owned()).collect::<String>()
    };
    let (spans, metrics) = (body("/v1/traces"), body("/v1/metrics"));
    for wanted in ["tool_execution", "tool_attempt", "retry_delay", "read_file", "shop-guard"] {
        assert!(spans.contains(wanted), "no {wanted} among {} bytes", spans.len());
    }
    for wanted in ["openclaw_tool_calls", "openclaw_tool_retry_attempts", "shop-guard"] {
        assert!(metrics.contains(wanted), "no {wanted} among {} bytes", metrics.len());
    }
}

#[test]
fn a_collector_is_sent_to_over_https_if_its_certificate_is_trusted() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let own = authority.issue(["127.0.0.1"]);
    let trusted = write(&folder, "ca.pem", &authority.pem());
    let other = write(&folder, "other.pem", &Authority::new().pem());
    for (file, how) in [(&trusted, "none"), (&trusted, "gzip"), (&other, "none")] {
        let (endpoint, requests) = collector(true, Some(&own));
        let vars = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", file),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", how),
        ];
        let mut client = guarded(&[], &vars);
        client.ask(1, "read_file", json!({ "path": "a" }));
        client.close();
        client.wait();
        let spans: Vec<_> = requests.try_iter().filter(|(to, _)| to == "/v1/traces").collect();
        let is_gzip = |body: &[u8]| body.starts_with(&[0x1f, 0x8b]);
        let is_plain = |body: &[u8]| String::from_utf8_lossy(body).contains("tool_execution");
        if file == &other {
            let said = client.stderr();
            assert!(spans.is_empty() && said.contains("certificate is not trusted"), "{said}");
        } else {
            let arrived = spans.iter().any(|(_, body)| match how {
                "gzip" => is_gzip(body),
                _ => is_plain(body),
            });
            assert!(arrived, "{how}: {}", spans.len());
        }
    }
    let vars = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file"),
    ];
    let mut client = guarded(&[], &vars);
    assert_eq!(client.wait().code(), Some(1));
    assert!(client.stderr().contains("OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read"));
}

#[test]
fn a_collector_that_never_answers_or_is_not_there_costs_calls_nothing() {
    let (silent, _requests) = collector(false, None);
    for endpoint in [&*silent, "http://127.0.0.1:1"] {
        let vars = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "60000"),
            ("OTEL_BSP_SCHEDULE_DELAY", "1"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "8"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1"),
        ];
        let mut client = guarded(&[], &vars);
        client.list_tools();
        let begun = now();
        for id in 1..=100 {
            client.ask(id, "echo", json!({ "text": id.to_string() }));
        }
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "{endpoint}: 100 calls took {took:?}");
        let begun = now();
        client.leave();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(8), "{endpoint}: the end took {took:?}");
    }
}

#[test]
fn a_failing_collector_is_reported_once_and_without_its_address() {
    let vars = [
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://user:hunter2@127.0.0.1:1/v1/metrics"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1"),
    ];
    let mut client = guarded(&[], &vars);
    client.ask(0, "echo", json!({ "text": "x" }));
    let log = client.log_until(|log| log.contains("telemetry_not_delivered"));
    assert!(log.contains("cannot be reached") && !log.contains("hunter2"), "{log}");
    client.ask(1, "echo", json!({ "text": "x" }));
    client.close();
    let log = client.log_until(|log| log.contains("\"summary\""));
    assert!(!log.contains("telemetry_not_delivered"), "{log}");
}

#[test]
fn what_cannot_be_sent_is_said_and_the_guard_runs() {
    let vars = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ];
    let mut client = guarded(&[], &vars);
    client.log_until(|log| log.contains("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported"));
    client.ask(1, "echo", json!({ "text": "x" }));
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
