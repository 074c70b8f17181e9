//! `cargo xtask ci`: every check that a change has to pass, the cheap ones first, the tests last.

use std::time::Duration;

use anyhow::Result;

use crate::{
    api, deny, features, fuzz, gate, lab, loom, package,
    repo::{BENCHES, Repo},
    schemas, shell, site,
    tally::Tally,
    test, tidy,
};

/// How a step ended that did not fail.
#[derive(Debug)]
enum End {
    Passed,
    Skipped(&'static str),
    Tested(Tally),
}

/// One check.
struct Step {
    name: &'static str,
    /// What helps when it fails.
    help: &'static str,
    run: fn(&Repo) -> Result<End>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", help: "run `cargo fmt --all`", run: fmt },
    Step {
        name: "tidy",
        help: "mend each line above; an exception goes with its reason into xtask/src/tidy/allow.rs",
        run: |repo| tidy::run(repo).map(|()| End::Passed),
    },
    Step {
        name: "site",
        help: "mend the links above, or list the page in docs/SUMMARY.md",
        run: |repo| site::run(repo).map(|()| End::Passed),
    },
    Step {
        name: "deny",
        help: "choose another dependency, or add the licence or exception with its reason to deny.toml",
        run: |repo| deny::run(repo).map(|()| End::Passed),
    },
    Step { name: "clippy", help: "mend the code; nearly all lints say how", run: clippy },
    Step {
        name: "features",
        help: "give the feature what it needs, in its crate's Cargo.toml or by a `cfg`",
        run: |repo| features::run(repo).map(|()| End::Passed),
    },
    Step { name: "docs", help: "mend the links and examples in the docs", run: docs },
    Step {
        name: "api",
        help: "if the change is meant, run `cargo xtask api`, commit it, and tell it in CHANGELOG.md",
        run: |repo| api::check(repo).map(|ran| ran_or(ran, "another version than Rust 1.95")),
    },
    Step {
        name: "schemas",
        help: "run `cargo xtask schemas` and commit what changed",
        run: |repo| schemas::check(repo).map(|()| End::Passed),
    },
    Step {
        name: "package",
        help: "give the crate what a registry wants: a README, licences, versions of what it depends on",
        run: |repo| package::run(repo, false).map(|()| End::Passed),
    },
    Step {
        name: "loom",
        help: "loom prints the schedule that fails; `cargo xtask loom` runs the models alone",
        run: |repo| loom::run(repo).map(|ran| ran_or(ran, "no tests/loom.rs")),
    },
    Step {
        name: "fuzz",
        help: "the input is under target/fuzz/crashes; add it as a unit test and mend the code",
        run: |repo| fuzz::run(repo, fuzz::SECONDS).map(|ran| ran_or(ran, "no fuzz folder")),
    },
    Step {
        name: "lab",
        help: "mend the code, or what a `--check` says; rows in docs/coverage follow what changed names",
        run: |repo| lab::check(repo).map(|()| End::Passed),
    },
    Step {
        name: "gate",
        help: "make it cheaper, or say in the commit why not and run `cargo xtask gate --bless`",
        run: |repo| gate::run(repo, false).map(|ran| ran_or(ran, "no package `benches`")),
    },
    Step {
        name: "benches",
        help: "`cargo bench -p benches -- --test` runs each bench once",
        run: benches,
    },
    Step {
        name: "test",
        help: "`cargo xtask test` runs all of them, `cargo test -p CRATE NAME` one",
        run: |repo| test::run(repo).map(End::Tested),
    },
];

/// Runs every step, also after one that failed: one run names all that is to be mended.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let begin = shell::now();
    let mut rows = Vec::new();
    for step in STEPS {
        println!("\n── {} ──", step.name);
        let start = shell::now();
        let end = (step.run)(repo);
        let took = start.elapsed();
        println!("── {}: {:.1} s ──", step.name, took.as_secs_f64());
        rows.push((step, took, end));
    }
    println!("\n{}", table(&rows, begin.elapsed()));
    if let Some((_, _, Ok(End::Tested(total)))) = rows.last() {
        println!("tests: {} passed, {} failed", total.passed, total.failed);
    }
    let failures: Vec<_> = rows
        .iter()
        .filter_map(|(step, _, end)| Some((step, end.as_ref().err()?)))
        .map(|(step, error)| format!("{} failed: {}: {error:#}", step.name, step.help))
        .collect();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

fn table(rows: &[(&Step, Duration, Result<End>)], total: Duration) -> String {
    let mut table = String::new();
    for (Step { name, .. }, took, end) in rows {
        let end = match end {
            Ok(End::Passed) => "ok".into(),
            Ok(End::Skipped(why)) => format!("skipped: {why}"),
            Ok(End::Tested(tally)) => format!("ok, {} tests", tally.passed),
            Err(_) => "FAILED".into(),
        };
        table += &format!("{name:<8} {:>7.1} s  {end}\n", took.as_secs_f64());
    }
    table + &format!("{:<8} {:>7.1} s\n", "all", total.as_secs_f64())
}

fn ran_or(ran: bool, why: &'static str) -> End {
    if ran { End::Passed } else { End::Skipped(why) }
}

fn fmt(repo: &Repo) -> Result<End> {
    shell::run(repo.cargo().args(["fmt", "--all", "--check"])).map(|()| End::Passed)
}

fn clippy(repo: &Repo) -> Result<End> {
    let mut cargo = repo.cargo();
    cargo.args(["clippy", "--workspace", "--all-features", "--all-targets"]);
    shell::run(cargo.args(["--", "-D", "warnings"])).map(|()| End::Passed)
}

fn docs(repo: &Repo) -> Result<End> {
    let mut cargo = repo.cargo();
    cargo.args(["doc", "--no-deps", "--workspace", "--all-features"]);
    shell::run(cargo.env("RUSTDOCFLAGS", "-D warnings")).map(|()| End::Passed)
}

/// Runs each bench once.
fn benches(repo: &Repo) -> Result<End> {
    let mut cargo = repo.cargo();
    cargo.args(["bench", "--package", BENCHES]);
    shell::run(cargo.args(["--", "--test"])).map(|()| End::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_every_end() {
        let second = Duration::from_secs(1);
        let step = |name| STEPS.iter().find(|step| step.name == name).unwrap();
        let rows = [
            (step("fmt"), second, Ok(End::Passed)),
            (step("loom"), second, Ok(End::Skipped("no tests/loom.rs"))),
            (step("test"), second, Ok(End::Tested(Tally { passed: 7, failed: 0 }))),
            (step("gate"), second, Err(anyhow::anyhow!("too many"))),
        ];
        let table = table(&rows, second * 4);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "fmt          1.0 s  ok",
                "loom         1.0 s  skipped: no tests/loom.rs",
                "test         1.0 s  ok, 7 tests",
                "gate         1.0 s  FAILED",
                "all          4.0 s",
            ]
        );
    }

    #[test]
    fn the_tests_come_last() {
        assert_eq!(STEPS.last().map(|step| step.name), Some("test"));
    }
}
