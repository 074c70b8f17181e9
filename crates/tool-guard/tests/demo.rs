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
    assert_eq!(figure("flaky_read", "without", "failures"), 3);
    assert_eq!(figure("flaky_read", "with", "failures"), 0);

    assert_eq!(figure("lost_payment", "without", "duplicates"), 2);
    assert_eq!(figure("lost_payment", "with", "executions"), 1);

    assert_eq!(figure("malformed_loop", "without", "executions"), 12);
    assert_eq!(figure("malformed_loop", "with", "executions"), 2);

    assert_eq!(figure("outage", "without", "executions"), 15);
    assert_eq!(figure("outage", "with", "executions"), 8);
    let outage = scenes.iter().find(|found| found["scene"] == "outage").unwrap();
    assert_eq!(outage["with"]["breakers"], serde_json::json!(["OPEN"]));

    let turn = scenes.iter().find(|found| found["scene"] == "turn").unwrap();
    assert_eq!(
        turn["summary"],
        "Completed itinerary, hotels and quote, but booking timed out, rates failed, receipt was skipped"
    );
}
