//! A real Prometheus on a free port.
use crate::until;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// What a minute of the rules takes here.
const MINUTE_MS: u64 = 1_000;

/// The rules with windows and waits of seconds in place of minutes; all else is as it is.
pub(crate) fn hurried(rules: &str) -> String {
    let mut hurried = String::new();
    let mut rest = rules;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        hurried += before;
        let is_duration = before.ends_with('[') || before.ends_with("for: ");
        rest = match after.strip_prefix('m').filter(|_| is_duration) {
            Some(after) => {
                let minutes: u64 = number.parse().unwrap();
                hurried += &format!("{}ms", minutes * MINUTE_MS);
                after
            }
            None => {
                hurried += number;
                after
            }
        };
    }
    hurried + rest
}

pub(crate) struct Prometheus {
    child: Child,
    address: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes `target` and watches `rules`.
    pub(crate) fn start(target: &str, rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("alerts.yml", rules);
        let config = format!(
            "global: {{ scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms }}\n\
             rule_files: [alerts.yml]\n\
             scrape_configs:\n  - job_name: tool-guard\n    static_configs: [{{ targets: [\"{target}\"] }}]\n"
        );
        write("prometheus.yml", &config);
        // Free until Prometheus takes it.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let address = free.to_string();
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus runs: `cargo xtask test` installs Debian's package prometheus");
        let mut prometheus = Self { child, address, _folder: folder };
        until("Prometheus is ready", || {
            let ended = prometheus.child.try_wait().unwrap();
            assert!(ended.is_none(), "Prometheus has ended: {ended:?}");
            prometheus.get("/-/ready").filter(|said| said.contains("Ready"))
        });
        prometheus
    }

    /// The alerts that fire, with their tools.
    pub(crate) fn firing(&self) -> BTreeSet<(String, String)> {
        let body = self.get("/api/v1/alerts").unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        let alerts = body["data"]["alerts"].as_array().cloned().unwrap_or_default();
        let label = |alert: &Value, name: &str| {
            alert["labels"][name].as_str().unwrap_or_default().to_owned()
        };
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing.map(|alert| (label(alert, "alertname"), label(alert, "tool"))).collect()
    }

    /// Whether it answers a query.
    pub(crate) fn understands(&self, query: &str) -> bool {
        let coded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = self.get(&format!("/api/v1/query?query={coded}")).unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        body["status"] == "success"
    }

    /// The body of an answer, if there is one.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nhost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
