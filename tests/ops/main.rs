//! The alerts of docs/ops: promtool tests them, and a real Prometheus fires them by scraping a real guard.
mod guard;
mod ledger;
mod prometheus;

use guard::Guard;
use prometheus::Prometheus;
use serde_json::{Value, json};
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
    assert_eq!(alerts.len(), 8);
    for alert in alerts {
        assert!(page.contains(&format!("| `{alert}` |")), "README.md has no row for {alert}");
        let fires = tests.split("alertname: ").any(|case| {
            case.strip_prefix(&*alert)
                .is_some_and(|case| case.trim_start().starts_with("exp_alerts"))
        });
        assert!(fires, "alerts_test.yml does not fire {alert}");
    }
    // As the pages of the site name their headings.
    let runbook = fs::read_to_string(folder().join("../runbook.md")).unwrap();
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|it| it.is_alphanumeric() || " _-".contains(*it));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    let anchors: BTreeSet<_> =
        runbook.lines().filter_map(|line| Some(anchor(line.strip_prefix("## ")?))).collect();
    let urls = rules.lines().filter_map(|line| line.trim().strip_prefix("runbook_url: "));
    let named: Vec<_> = urls.map(|url| url.trim_matches('"').rsplit_once('#').unwrap().1).collect();
    assert_eq!(named.len(), 8);
    for name in named {
        assert!(anchors.contains(name), "the runbook has no heading for {name}: {anchors:?}");
    }
}

/// A tool that is down, and one that is slow: each has its alerts, and no other one.
#[test]
fn a_real_prometheus_fires_the_alerts_for_a_real_guard() {
    let guard = Guard::start(
        "[breaker]\nconsecutive = 2\ncooldown_ms = 100\n[breaker.read_only]\nconsecutive = 2\ncooldown_ms = 100\n[loops]\nenabled = false\n[retry]\nattempts = 1\n",
        &["--records", "memory"],
    );
    let rules = fs::read_to_string(folder().join("alerts.yml")).unwrap();
    let prometheus = Prometheus::start(&guard.metrics, &prometheus::hurried(&rules));
    let mut guard = guard;
    let fired = until("the alerts fire", || {
        (0..4).for_each(|_| guard.call("exchange_rate", &json!({})));
        guard.call("slow", &json!({ "ms": 2_600 }));
        guard.call("echo", &json!({ "text": "well" }));
        let fired = prometheus.firing();
        (fired.len() >= 3).then_some(fired)
    });
    assert_eq!(
        fired,
        wanted(&[
            ("ToolAlwaysFails", "exchange_rate"),
            ("ToolBreakerReopens", "exchange_rate"),
            ("ToolReadLatencyHigh", "slow"),
        ])
    );
}

fn wanted(alerts: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    alerts.iter().map(|(alert, tool)| ((*alert).to_owned(), (*tool).to_owned())).collect()
}

/// A payment of unknown outcome and a key that is used twice, with records in SQLite as by default; then the guard is gone.
#[test]
fn a_real_prometheus_fires_for_an_unknown_payment_and_a_guard_that_is_gone() {
    let mut guard = Guard::start("attempt_timeout_ms = 200\n", &[]);
    let rules = fs::read_to_string(folder().join("alerts.yml")).unwrap();
    let prometheus = Prometheus::start(&guard.metrics, &prometheus::hurried(&rules));
    guard.call_with("charge_card", &json!({ "order": "1", "then": "hang" }), "key 1");
    guard.call_with("charge_card", &json!({ "order": "2" }), "key 2");
    guard.call_with("charge_card", &json!({ "order": "3" }), "key 2");
    let unknown =
        wanted(&[("ToolKeyConflict", "charge_card"), ("ToolOutcomeUnknown", "charge_card")]);
    until("both alerts fire", || (prometheus.firing() == unknown).then_some(()));
    runs_the_runbook(&guard);
    for query in dashboard() {
        assert!(prometheus.understands(&query), "Prometheus refuses the dashboard's {query}");
    }
    drop(guard);
    until("the guard is missed", || {
        prometheus.firing().contains(&("ToolGuardDown".into(), String::new())).then_some(())
    });
}

/// The runbook's commands for a payment of unknown outcome, with its record. Without a terminal they settle nothing.
fn runs_the_runbook(guard: &Guard) {
    const RECORD: &str = "3fa91c0be27d";
    let runbook = fs::read_to_string(folder().join("../runbook.md")).unwrap();
    let (_, entry) = runbook.split_once("## A call answers `outcome_unknown`").unwrap();
    let (_, block) = entry.split_once("```sh\n").unwrap();
    let commands = block.lines().take_while(|line| *line != "```");
    let (_, listed) = guard.command("tool-guard records list --unknown");
    let record = listed.split(' ').next().unwrap();
    let ends: Vec<_> = commands
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (code, said) = guard.command(&line.replace(RECORD, record));
            let is_told = said.contains(record) || said.contains("terminal");
            assert!(is_told, "{line}: {said}");
            code
        })
        .collect();
    assert_eq!(ends, [Some(0), Some(0), Some(7), Some(7)], "{listed}");
}

/// The alerts and the dashboard ask for series that exist.
#[test]
fn the_page_on_telemetry_has_each_series() {
    let page = fs::read_to_string(folder().join("../telemetry.md")).unwrap();
    let rules = fs::read_to_string(folder().join("alerts.yml")).unwrap();
    let all = dashboard().join(" ") + &rules;
    let words = all.split(|it: char| !it.is_alphanumeric() && it != '_');
    let series: BTreeSet<_> = words.filter(|it| it.starts_with("openclaw_")).collect();
    assert!(series.len() >= 8, "{series:?}");
    for name in series {
        assert!(page.contains(&format!("{name}{{")), "the page has no {name}");
    }
}

/// The dashboard's queries.
fn dashboard() -> Vec<String> {
    let text = fs::read_to_string(folder().join("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}
