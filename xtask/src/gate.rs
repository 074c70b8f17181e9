//! `cargo xtask gate`: instructions per operation, counted by callgrind, against the limits in `benches/gate.toml`.
//!
//! Only what the operations take is counted, not what goes before. Instructions repeat from machine to machine where times
//! don't, so a limit can be tight. Tables hash with keys that are drawn again in each process and now and then move their
//! entries: 20,000 operations, two turns of a full table, bring that below 1 % (1,000 left 10 %).

mod doors;

use std::{
    collections::BTreeMap,
    fs,
    panic::resume_unwind,
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    need::{self, VALGRIND},
    repo::{BENCHES, Repo},
    shell,
};

/// Operations that are counted.
const N: u64 = 20_000;

/// The same for an operation that takes more than [`HEAVY`] instructions.
const FEW: u64 = 1_000;

/// Above this, moving entries is lost in the rest.
const HEAVY: u64 = 10_000;

/// The function of the binary `gate` that does the operations.
const MEASURED: &str = "*gate*measured*";

/// What is held beside tower's own: an operation, tower's, and how many times its instructions it may take.
const RATIOS: [(&str, &str, f64); 3] = [
    ("retry success", "tower: retry", 1.0),
    ("retry with budget", "tower: retry with budget", 0.6),
    ("timeout success", "tower: timeout", 1.1),
];

/// Operation to instructions.
pub type Counts = BTreeMap<String, u64>;

/// Measures every case of the binary `gate` in the package `benches`; `false` if there is no such package.
pub(crate) fn run(repo: &Repo, bless: bool) -> Result<bool> {
    if repo.package(BENCHES).is_none() {
        println!("no package `benches`, nothing to measure");
        return Ok(false);
    }
    let mut measured = measure(repo, |_| true)?;
    doors::measure(repo, &mut measured)?;
    let path = repo.root.join("benches/gate.toml");
    if bless {
        fs::write(&path, toml::to_string(&blessed(&measured))?)?;
        println!("{} limits written", measured.len());
        return Ok(true);
    }
    let limits = fs::read_to_string(&path)
        .with_context(|| format!("{} cannot be read", repo.relative(&path).display()))?;
    let limits: Counts =
        toml::from_str(&limits).context("benches/gate.toml: `name = instructions` wanted")?;
    for (name, count) in &measured {
        let limit =
            limits.get(name).map_or_else(|| "no limit".into(), |limit| format!("≤ {limit}"));
        println!("{name:<40} {count:>8} Ir  {limit}");
    }
    for (ours, towers, most) in RATIOS {
        println!("{ours} ÷ {towers}: {:.2}, at most {most}", ratio(&measured, ours, towers));
    }
    match faults(&measured, &limits) {
        faults if faults.is_empty() => Ok(true),
        faults => bail!("instructions per operation: {}", faults.join("; ")),
    }
}

/// Instructions per operation of the cases that are wanted.
pub fn measure(repo: &Repo, is_wanted: impl Fn(&str) -> bool) -> Result<Counts> {
    need::ensure(repo, &[&VALGRIND])?;
    shell::run(repo.cargo().args(["build", "--profile", "bench"]).args([
        "--package",
        BENCHES,
        "--bin",
        "gate",
    ]))?;
    let gate = repo.target.join("release/gate");
    let names = shell::read(repo.command(&gate).arg("list"))?;
    let wanted = Mutex::new(names.lines().filter(|name| is_wanted(name)).collect::<Vec<_>>());
    let next = || wanted.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        let mut counted = Vec::new();
        while let Some(name) = next() {
            let rough = per_operation(repo, &gate, name, FEW)?;
            let count = if rough > HEAVY { rough } else { per_operation(repo, &gate, name, N)? };
            counted.push((name.to_owned(), count));
        }
        Ok(counted)
    };
    // Other programs do not change what is counted.
    let parts = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut measured = Counts::new();
    for part in parts {
        let part: Result<Vec<_>> = part.unwrap_or_else(|panic| resume_unwind(panic));
        measured.extend(part?);
    }
    Ok(measured)
}

/// Instructions per operation, on average of so many.
fn per_operation(repo: &Repo, gate: &Path, name: &str, operations: u64) -> Result<u64> {
    let output = repo
        .command("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={MEASURED}"))
        .arg(gate)
        .args(["run", name, &operations.to_string()])
        .output()
        .context("valgrind does not start")?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!(
            "`gate run {name} {operations}` failed under callgrind ({}):\n{report}",
            output.status
        );
    }
    let total = collected(&report).filter(|total| *total > 0);
    let total = total.with_context(|| format!("callgrind counted nothing:\n{report}"))?;
    Ok(total.div_ceil(operations))
}

/// The total in callgrind's report: `==7== Collected : 126559`.
fn collected(report: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Limits that leave 5 % for another compiler's mood.
fn blessed(measured: &Counts) -> Counts {
    measured.iter().map(|(name, count)| (name.clone(), (count * 105).div_ceil(100))).collect()
}

fn faults(measured: &Counts, limits: &Counts) -> Vec<String> {
    let unknown = limits.keys().filter(|name| !measured.contains_key(*name));
    measured
        .iter()
        .filter_map(|(name, count)| match limits.get(name) {
            None => Some(format!("{name} has no limit")),
            Some(limit) if count > limit => Some(format!("{name} takes {count}, limit {limit}")),
            Some(_) => None,
        })
        .chain(unknown.map(|name| format!("{name} has a limit but is not measured")))
        .chain(RATIOS.into_iter().filter_map(|(ours, towers, most)| {
            let ratio = ratio(measured, ours, towers);
            (ratio > most).then(|| format!("{ours} ÷ {towers} is {ratio:.2}, limit {most}"))
        }))
        .collect()
}

/// Instructions of one operation ÷ those of another; nothing if one was not measured, which is a fault of its own.
fn ratio(measured: &Counts, ours: &str, theirs: &str) -> f64 {
    match (measured.get(ours), measured.get(theirs)) {
        (Some(ours), Some(theirs)) => *ours as f64 / *theirs as f64,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, u64)]) -> Counts {
        rows.iter().map(|(name, count)| ((*name).into(), *count)).collect()
    }

    #[test]
    fn the_total_is_read_from_the_report() {
        let report = "==5067== Events    : Ir\n==5067== Collected : 126559\n==5067==\n";
        assert_eq!(collected(report), Some(126_559));
        assert_eq!(collected("==5067== Events : Ir"), None);
    }

    #[test]
    fn a_blessed_count_passes_and_six_percent_more_fails() {
        let limits = blessed(&counts(&[("breaker", 100)]));
        assert_eq!(limits, counts(&[("breaker", 105)]));
        assert!(faults(&counts(&[("breaker", 105)]), &limits).is_empty());
        assert_eq!(faults(&counts(&[("breaker", 106)]), &limits), ["breaker takes 106, limit 105"]);
    }

    #[test]
    fn a_case_on_one_side_only_is_a_fault() {
        assert_eq!(
            faults(&counts(&[("new", 1)]), &counts(&[("old", 1)])),
            ["new has no limit", "old has a limit but is not measured"]
        );
    }

    #[test]
    fn what_is_held_beside_tower_fails_above_its_ratio() {
        let (ours, towers, most) = RATIOS[0];
        let measured = |count| counts(&[(ours, count), (towers, 100)]);
        let least = (most * 100.0) as u64;
        assert!(faults(&measured(least), &measured(least)).is_empty());
        let fault = faults(&measured(least + 1), &measured(least + 1));
        assert!(fault[0].starts_with("retry success ÷ tower: retry is "), "{fault:?}");
    }

    #[test]
    fn limits_survive_the_file() {
        let limits = counts(&[("breaker closed", 120), ("retry", 110)]);
        let file = toml::to_string(&limits).unwrap();
        assert_eq!(toml::from_str::<Counts>(&file).unwrap(), limits);
    }
}
