//! The metrics that the guides name are those that the code makes, all of them.
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The words of `text` that begin like a metric.
fn metrics(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
    let words = text.split(|c: char| !is_part(c)).map(|word| word.trim_end_matches('.'));
    let is_metric = |word: &&str| {
        let dotted = ["tool.invocation.", "tool.retry.", "tool.error.", "tool.shadow."];
        word.starts_with("openclaw_tool_")
            || *word == "gen_ai.execute_tool.duration"
            || dotted.iter().any(|start| word.starts_with(start))
    };
    words.filter(is_metric).collect()
}

/// Names in the code, as instruments have them.
fn made() -> BTreeSet<String> {
    let folder = root().join("crates/tr-telemetry/src/metrics");
    let mut made = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap() {
        let source = fs::read_to_string(file.unwrap().path()).unwrap();
        let literals = source.split('"').skip(1).step_by(2);
        made.extend(literals.filter(|it| metrics(it).len() == 1).map(str::to_owned));
    }
    made
}

/// A name in a scrape, as its instrument has it.
fn instrument<'n>(name: &'n str, made: &BTreeSet<String>) -> Option<&'n str> {
    let endings = ["", "_total", "_bucket", "_sum", "_count"];
    let names = endings.iter().filter_map(|ending| name.strip_suffix(ending));
    names.into_iter().find(|name| made.contains(*name))
}

#[test]
fn the_guide_names_every_metric_and_no_other() {
    let made = made();
    assert!(made.len() >= 20, "{made:?}");
    let guide = fs::read_to_string(root().join("docs/telemetry.md")).unwrap();
    let named: BTreeSet<_> = metrics(&guide)
        .into_iter()
        .map(|name| instrument(name, &made).unwrap_or_else(|| panic!("{name} is not made")))
        .collect();
    let made: BTreeSet<_> = made.iter().map(String::as_str).collect();
    assert_eq!(named, made);
}

#[test]
fn other_guides_and_the_alerts_name_metrics_that_are_there() {
    let made = made();
    for name in [
        "rollout.md",
        "runbook.md",
        "mcp.md",
        "ops/README.md",
        "ops/alerts.yml",
        "ops/alerts_test.yml",
    ] {
        let text = fs::read_to_string(root().join("docs").join(name)).unwrap();
        for metric in metrics(&text) {
            assert!(
                instrument(metric, &made).is_some(),
                "{name} names {metric}, which is not made"
            );
        }
    }
}
