//! The order of the layers, as the documents state it, is the order in `src/order.rs`.
use std::{fs, path::PathBuf};

fn text(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

/// What a document calls each layer, outermost first: the fields of `Layers`.
const NAMES: &[(&str, &[&str])] = &[
    ("call_telemetry", &["telemetry (call)", "TelemetryLayer::call"]),
    ("call_hooks", &["call hooks"]),
    ("default_deadline", &["default deadline"]),
    ("integrity", &["integrity"]),
    ("loop_guard", &["loop guard"]),
    ("checked", &["checked (feature `input-schema`)"]),
    ("idempotency", &["idempotency", "IdempotencyLayer"]),
    ("deadline", &["deadline", "DeadlineLayer"]),
    ("retry", &["retry", "RetryLayer"]),
    ("attempt_hooks", &["attempt hooks"]),
    ("attempt_telemetry", &["telemetry (attempt)", "TelemetryLayer::attempt"]),
    ("breaker", &["breaker", "BreakerLayer"]),
    ("attempt_timeout", &["attempt timeout", "timeout", "AttemptTimeoutLayer"]),
    ("cancel", &["cancel"]),
    ("adapter", &["adapter"]),
];

fn place(name: &str) -> Option<usize> {
    NAMES.iter().position(|(_, names)| names.contains(&name))
}

#[test]
fn the_names_are_the_layers_in_the_order_of_the_code() {
    let code = text("crates/tool-reliability/src/order.rs");
    let layers = code.split("pub(crate) struct Layers {").nth(1).unwrap();
    let fields = layers.split("\n}").next().unwrap().lines();
    let fields = fields.filter_map(|line| line.trim().strip_prefix("pub(crate) ")?.split_once(':'));
    let fields: Vec<_> = fields.map(|(field, _)| field).collect();
    assert_eq!(fields, NAMES.iter().map(|(field, _)| *field).collect::<Vec<_>>());
    // Applied from the innermost on.
    let applied = code.split("self.adapter.layer(").nth(1).unwrap();
    let applied =
        applied.lines().filter_map(|line| line.trim().split_once("self.")?.1.split_once(".layer("));
    let mut applied: Vec<_> = applied.map(|(field, _)| field).collect();
    applied.reverse();
    assert_eq!(applied, fields[..fields.len() - 1]);
}

#[test]
fn the_table_of_the_architecture_has_all_layers_in_their_order() {
    let table = text("ARCHITECTURE.md");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows = rows.filter(|(number, _)| number.parse::<u8>().is_ok_and(|number| number > 0));
    let cells = rows.map(|(_, row)| row.split(" | ").next().unwrap());
    let named: Vec<_> = cells.flat_map(|cell| cell.split(", ")).map(place).collect();
    assert_eq!(named, (0..NAMES.len()).map(Some).collect::<Vec<_>>());
}

#[test]
fn the_diagrams_keep_the_order() {
    for path in [
        "crates/tr-telemetry/src/lib.rs",
        "crates/tr-timeout/src/lib.rs",
        "docs/breaker.md",
        "docs/telemetry.md",
        "docs/timeout.md",
    ] {
        let text = text(path);
        let lines = text.lines().map(|line| line.strip_prefix("//! ").unwrap_or(line));
        let diagram = lines.filter_map(|line| line.strip_suffix(" ─ tool")).next().expect(path);
        let places: Vec<_> = diagram.split(" ─ ").map(|name| place(name).expect(name)).collect();
        assert!(places.is_sorted(), "{path}: {diagram}");
    }
}
