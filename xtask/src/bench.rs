//! `cargo xtask bench`: ours beside the peers, for each row of `benches/GOALS.md`.
//!
//! The comparison itself is the binary `compare` of the package `benches`; here it is built with the peers, and told
//! the instructions that callgrind counted.

use std::fs;

use anyhow::{Result, ensure};

use crate::{
    gate, pins,
    repo::{BENCHES, Repo},
    shell,
};

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

/// Prints the table and writes `target/bench/report.json`; `save` writes `benches/GOALS.md` too.
pub(crate) fn run(repo: &Repo, quick: bool, save: bool) -> Result<()> {
    ensure!(repo.package(BENCHES).is_some(), "the workspace has no package `benches`");
    shell::run(repo.cargo().args(["build", "--release", "--bins"]).args([
        "--package",
        "benches",
        "--package",
        "tool-guard",
        "--features",
        "benches/compare",
    ]))?;
    // The profile of the packages; its rows stand beside those of `--release`.
    shell::run(repo.cargo().args(["build", "--profile", "dist", "--package", "tool-guard"]))?;
    let folder = repo.target.join("bench");
    fs::create_dir_all(&folder)?;
    let report = folder.join("report.json");
    pins::npm(repo, PEERS, "benches/peers")?;
    pins::venv(repo, &format!("{PEERS}/venv"), "benches/peers/requirements.txt")?;
    let mut compare = repo.command(repo.target.join("release/compare"));
    compare.env("TR_BENCH_PEERS", repo.target.join(PEERS)).arg("--report").arg(&report);
    for (case, count) in gate::measure(repo, |case| CASES.contains(&case))? {
        compare.arg("--ir").arg(format!("{case}={count}"));
    }
    if quick {
        compare.arg("--quick");
    }
    if save {
        compare.arg("--table").arg(repo.root.join("benches/GOALS.md"));
    }
    shell::run(&mut compare)?;
    println!("written: {}", repo.relative(&report).display());
    Ok(())
}
