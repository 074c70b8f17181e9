//! Metrics and spans that a collector of OpenTelemetry is sent.
use super::{
    client::now,
    telemetry::{guarded, write},
};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};
use tokio_rustls::rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tr_testkit::tls::{Authority, Issued};

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
