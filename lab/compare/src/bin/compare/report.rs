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
        "{:<4} {what:<96} {:<24} {:<44} {}",
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

/// All rows, for `lab/NOTEBOOK.md`.
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

Written by `cargo lab bench --save`; `cargo lab bench` shows the same table as it is on your machine.

Ratios are ours ÷ the peer's on the same work in the same run: medians of batches that take turns, in nanoseconds of
the thread's CPU time, so that other programs on the machine count little. Allocations are counted by the allocator,
instructions (Ir) by callgrind, both per operation and with the leaf, the request and the loop around it. Round trips
of the proxy and calls on a file are real time. Two threads ÷ one compares operations per time, each thread on a core
of its own; the peer is the same figure of two threads with a service each. A target that was changed stands behind
the old one, with the reason, and rows are judged by it. The small request is 40 bytes and `Copy`; the whole stack and telemetry are called with 1 KiB of params.

Measured on {machine}, built with `--release` (no link-time optimisation); rows of the profile dist with
`--profile dist` (small code, optimized as a whole); the packages have that profile, too, and are linked statically.

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
        (Some(peer), Some(ratio)) if unit == "×" => format!("{ratio:.2} ({ours:.2} ÷ {peer:.2})"),
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

/// The target; one that was changed after the old one, with the reason.
fn target(measured: &Measured) -> String {
    let new = one_target(measured.row.target, measured.unit);
    let Some((old, why)) = measured.row.old else { return new };
    let old = one_target(old, measured.unit);
    let new = match new.split_once(' ') {
        Some((sign, rest)) if old.starts_with(sign) => rest,
        Some(_) => &new,
        None => "none",
    };
    format!("{old} → {new} ({why})")
}

fn one_target(target: Target, unit: &str) -> String {
    match target {
        Target::Ratio(most) => format!("≤ {most:.2}"),
        Target::AtLeast(least) => format!("≥ {least:.1}"),
        Target::Most(most) if unit == "ns" => format!("≤ {}", time(most)),
        Target::Most(most) => format!("≤ {most} {unit}"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{row::How::Instructions, rows::row};
    use Target::{AtLeast, Most, Nothing, Ratio};

    #[test]
    fn a_target_that_was_changed_shows_the_old_one_and_the_reason_and_the_new_one_judges() {
        let measured = |new, old, [ours, peer]: [f64; 2], unit| Measured {
            row: row("P0", "work", "peer", new, Instructions("case")).was(old, "does more"),
            ours: Some(ours),
            peer: Some(peer),
            unit,
        };
        let ratio = measured(Ratio(0.45), Ratio(0.17), [30.0, 100.0], "ns");
        assert_eq!((&*target(&ratio), met(&ratio)), ("≤ 0.17 → 0.45 (does more)", "yes"));
        let count = measured(Most(5_000.0), Most(1_700.0), [5_001.0, 0.0], "Ir");
        assert_eq!((&*target(&count), met(&count)), ("≤ 1700 Ir → 5000 Ir (does more)", "**no**"));
        let scale = measured(AtLeast(0.9), AtLeast(1.8), [1.7, 2.0], "×");
        assert_eq!((&*target(&scale), met(&scale)), ("≥ 1.8 → 0.9 (does more)", "**no**"));
        assert_eq!(here(&scale), "0.85 (1.70 ÷ 2.00)");
        let none = measured(Nothing, Ratio(1.0), [1.0, 1.0], "ns");
        assert_eq!((&*target(&none), met(&none)), ("≤ 1.00 → none (does more)", ""));
        let turned = measured(AtLeast(0.9), Most(2.0), [1.0, 1.0], "×");
        assert_eq!(target(&turned), "≤ 2 × → ≥ 0.9 (does more)");
    }
}
