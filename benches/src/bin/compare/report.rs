//! The figures as text, JSON and Markdown.
use crate::row::{Measured, Target};
use serde_json::{Value, json};
use std::{fs, num::NonZero, thread};
use tr_core::BoxError;

/// A row for the terminal.
pub(crate) fn line(measured: &Measured) -> String {
    let row = measured.row;
    let against = if row.peer.is_empty() { String::new() } else { format!(" ÷ {}", row.peer) };
    let what = format!("{}{against}", row.what);
    format!(
        "{:<4} {what:<96} {:<24} {:<10} {}",
        row.id,
        here(measured),
        target(measured),
        met(measured)
    )
    .trim_end()
    .to_owned()
}

/// All rows, for programs.
pub(crate) fn json(results: &[Measured]) -> Result<String, BoxError> {
    let rows: Vec<Value> = results
        .iter()
        .map(|measured| {
            let row = measured.row;
            json!({
                "id": row.id,
                "what": row.what,
                "against": row.peer,
                "unit": measured.unit,
                "ours": measured.ours,
                "peer": measured.peer,
                "ratio": measured.ratio(),
                "target": target(measured),
                "ok": measured.is_met(),
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&json!({ "rows": rows }))?)
}

/// All rows, for `benches/GOALS.md`.
pub(crate) fn markdown(results: &[Measured]) -> String {
    let missed: Vec<_> = results.iter().filter(|one| one.is_met() == Some(false)).collect();
    let mut text = HEAD.replace("{machine}", &machine());
    for measured in results {
        let row = measured.row;
        let cells = [row.id, row.what, row.peer, &target(measured), &here(measured), met(measured)];
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text += &match missed.len() {
        0 => "\nNo target is missed.\n".to_owned(),
        many => format!("\n{many} targets are missed: the rows that say **no**.\n"),
    };
    text
}

const HEAD: &str = "\
# Ours beside the peers

Written by `cargo xtask bench --save`; `cargo xtask bench` shows the same table as it is on your machine.

Ratios are ours ÷ the peer's on the same work in the same run: medians of batches that take turns, in nanoseconds of
the thread's CPU time, so that other programs on the machine count little. Allocations are counted by the allocator,
instructions (Ir) by callgrind, both per operation and with the leaf, the request and the loop around it. Round trips
of the proxy and calls on a file are real time. Two threads ÷ one compares operations per time, each thread on a core
of its own. The small request is 40 bytes and `Copy`; the whole stack and telemetry are called with 1 KiB of params.

Measured on {machine}, built with `--release` (no link-time optimisation).

| id | work | beside | target | measured here | met |
|---|---|---|---|---|---|
";

fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = thread::available_parallelism().map_or(0, NonZero::get);
    let model = model.map_or("an unknown processor", |(_, model)| model);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores of {model} under a load of {load}")
}

/// The figures of a row.
fn here(measured: &Measured) -> String {
    let Some(ours) = measured.ours else {
        return if measured.unit.is_empty() { "not yet" } else { "not measured" }.to_owned();
    };
    let unit = measured.unit;
    match (measured.peer, measured.ratio()) {
        (Some(peer), Some(ratio)) if unit == "ns" => {
            format!("{ratio:.2} ({} ÷ {})", time(ours), time(peer))
        }
        (Some(peer), _) => format!("{} beside {} {unit}", short(ours), short(peer)),
        (None, _) if unit == "ns" => time(ours),
        (None, _) if unit == "×" => format!("{ours:.2}"),
        (None, _) => format!("{} {unit}", short(ours)),
    }
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        10_000.0.. => format!("{:.1} µs", nanoseconds / 1e3),
        100.0.. => format!("{nanoseconds:.0} ns"),
        _ => format!("{nanoseconds:.1} ns"),
    }
}

/// A count without the zeros behind it. One in ten thousand is not nothing.
fn short(count: f64) -> String {
    let text = format!("{count:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn target(measured: &Measured) -> String {
    match measured.row.target {
        Target::Ratio(most) => format!("≤ {most:.2}"),
        Target::Scale(least) => format!("≥ {least:.1}"),
        Target::Most(most) if measured.unit == "ns" => format!("≤ {}", time(most)),
        Target::Most(most) => format!("≤ {most} {}", measured.unit),
        Target::Nothing => String::new(),
    }
}

fn met(measured: &Measured) -> &'static str {
    match measured.is_met() {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    }
}
