//! `tool-guard demo` shows what it claims to show.
use serde_json::Value;
use std::process::Command;

fn demo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tool-guard"))
        .arg("demo")
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_guard_pays_once_and_spares_the_agent_and_the_backend() {
    let scenes: Vec<Value> = serde_json::from_str(&demo(&["--json"])).unwrap();
    let figure = |scene: &str, side: &str, what: &str| {
        let found = scenes.iter().find(|found| found["scene"] == scene).unwrap();
        found[side][what].as_u64().unwrap()
    };
    let find = |name: &str| scenes.iter().find(|found| found["scene"] == name).unwrap();
    for (scene, paid) in [("killed_guard", 2), ("lost_payment", 3)] {
        assert_eq!(figure(scene, "without", "executions"), paid);
        assert_eq!(figure(scene, "with", "executions"), 1);
    }
    let told = find("killed_guard")["with"]["told"].as_str().unwrap();
    assert!(told.contains("do not repeat it") && told.contains("[record "), "{told}");

    assert_eq!(figure("flaky_read", "without", "failures"), 3);
    assert_eq!(figure("flaky_read", "with", "failures"), 0);

    assert_eq!(figure("malformed_loop", "without", "executions"), 12);
    assert_eq!(figure("malformed_loop", "with", "executions"), 2);

    assert_eq!(figure("outage", "without", "executions"), 40);
    assert!(figure("outage", "with", "executions") <= 10);
}

/// `cargo lab picture` draws it from a run.
#[test]
fn the_picture_in_the_docs_shows_what_the_demo_prints() {
    let picture = include_str!("../../../docs/demo.svg");
    let shown = demo(&[]);
    let is_in_each_run = |line: &&str| !line.contains(|it: char| it.is_ascii_digit());
    let lines: Vec<_> = shown.lines().map(str::trim).filter(is_in_each_run).collect();
    for line in lines.iter().flat_map(|line| line.split("  ")).filter(|part| !part.is_empty()) {
        let line = line.trim().replace('<', "&lt;");
        assert!(picture.contains(&line), "run `cargo lab picture`: it lacks {line}");
    }
    assert!(lines.len() > 10, "{shown}");
    assert!(shown.lines().count() < 24 && shown.lines().all(|line| line.chars().count() <= 80));
}
