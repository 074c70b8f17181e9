//! The alerts of docs/ops: promtool tests them, and a real Prometheus fires them by scraping a real guard.
mod guard;
mod prometheus;

use guard::Guard;
use prometheus::Prometheus;
use serde_json::json;
use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/ops")
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn now() -> Instant {
    Instant::now()
}

/// Waits until `probe` finds something.
fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + PATIENCE;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(now() < deadline, "waited {PATIENCE:?} until {what}");
        thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn promtool_finds_the_rules_right() {
    let promtool = |args: &[&str]| {
        let output = Command::new("promtool")
            .args(args)
            .current_dir(folder())
            .output()
            .expect("promtool runs: `cargo xtask test` installs Debian's package prometheus");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    };
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts_test.yml"]);
}

/// The page has a row for each alert, and the unit tests a case.
#[test]
fn each_alert_is_explained_and_tested() {
    let read = |name: &str| fs::read_to_string(folder().join(name)).unwrap();
    let (rules, tests, page) = (read("alerts.yml"), read("alerts_test.yml"), read("README.md"));
    let named = |line: &str| line.trim().strip_prefix("- alert: ").map(str::to_owned);
    let alerts: BTreeSet<_> = rules.lines().filter_map(named).collect();
    assert_eq!(alerts.len(), 4);
    for alert in alerts {
        assert!(page.contains(&format!("| `{alert}` |")), "README.md has no row for {alert}");
        let fires = tests.split("alertname: ").any(|case| {
            case.strip_prefix(&*alert)
                .is_some_and(|case| case.trim_start().starts_with("exp_alerts"))
        });
        assert!(fires, "alerts_test.yml does not fire {alert}");
    }
}

/// A tool that is down, and one that is slow: each has its alert, and no other one.
#[test]
fn a_real_prometheus_fires_the_alerts_for_a_real_guard() {
    let guard = Guard::start(
        "[breaker]\nconsecutive = 2\ncooldown_ms = 100\n[breaker.read_only]\nconsecutive = 2\ncooldown_ms = 100\n[loops]\nenabled = false\n[retry]\nattempts = 1\n",
    );
    let rules = fs::read_to_string(folder().join("alerts.yml")).unwrap();
    let prometheus = Prometheus::start(&guard.metrics, &prometheus::hurried(&rules));
    let mut guard = guard;
    let fired = until("both alerts fire", || {
        guard.call("exchange_rate", &json!({}));
        guard.call("slow", &json!({ "ms": 2_600 }));
        guard.call("echo", &json!({ "text": "well" }));
        let fired = prometheus.firing();
        (fired.len() >= 2).then_some(fired)
    });
    let wanted = [("ToolBreakerReopens", "exchange_rate"), ("ToolReadLatencyHigh", "slow")];
    let wanted: BTreeSet<_> = wanted.map(|(alert, tool)| (alert.into(), tool.into())).into();
    assert_eq!(fired, wanted);
}
