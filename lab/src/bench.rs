//! `cargo lab bench`: ours beside the peers, for each row of `lab/NOTEBOOK.md`.
//!
//! The comparison itself is the binary `compare` of the package `compare`; here it is built, and told
//! the instructions that callgrind counted.

use std::fs;

use anyhow::Result;

use xtask::{gate, pins, repo::Repo, shell, test::release_guard};

use crate::cargo;

/// Cases of the gate that rows speak of.
const CASES: &[&str] = &[
    "retry success",
    "full stack first call",
    "full stack, no key",
    "full stack, various params, with signals",
    "full stack replay",
];

/// The folder under the target folder where the proxies are that the guard is measured beside.
const PEERS: &str = "bench-peers";

/// Prints the table and writes `target/bench/report.json`; `save` writes `lab/NOTEBOOK.md` too.
pub(crate) fn run(repo: &Repo, quick: bool, save: bool) -> Result<()> {
    shell::run(cargo(repo, "build").args(["--release", "--bins", "--package", "compare"]))?;
    release_guard(repo)?;
    // The profile of the packages; its rows stand beside those of `--release`.
    shell::run(repo.cargo().args(["build", "--profile", "dist", "--package", "tool-guard"]))?;
    let folder = repo.target.join("bench");
    fs::create_dir_all(&folder)?;
    let report = folder.join("report.json");
    pins::npm(repo, PEERS, "lab/pins/proxies")?;
    pins::venv(repo, &format!("{PEERS}/venv"), "lab/pins/proxies/requirements.txt")?;
    let mut compare = repo.command(repo.target.join("release/compare"));
    compare.env("TR_BENCH_PEERS", repo.target.join(PEERS)).arg("--report").arg(&report);
    for (case, count) in gate::measure(repo, |case| CASES.contains(&case))? {
        compare.arg("--ir").arg(format!("{case}={count}"));
    }
    if quick {
        compare.arg("--quick");
    }
    if save {
        compare.arg("--table").arg(repo.root.join("lab/NOTEBOOK.md"));
    }
    shell::run(&mut compare)?;
    println!("written: {}", repo.relative(&report).display());
    Ok(())
}
