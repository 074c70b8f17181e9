//! `cargo lab simulate`: clients through an outage, under our rules and others'; `docs/simulation.md` explains it.

use std::fs;

use anyhow::Result;

use xtask::{repo::Repo, shell};

use crate::cargo;

/// Prints the tables and writes `target/bench/simulate.json`; unless it is `quick`, also the tables and the plot in `docs/`.
pub(crate) fn run(repo: &Repo, quick: bool) -> Result<()> {
    shell::run(cargo(repo, "build").args(["--release", "--package", "simulate"]))?;
    let folder = repo.target.join("bench");
    fs::create_dir_all(&folder)?;
    let report = folder.join("simulate.json");
    let mut simulate = repo.command(repo.target.join("release/simulate"));
    simulate.arg("--report").arg(&report);
    if quick {
        simulate.arg("--quick");
    } else {
        simulate.args(["--docs", "docs"]);
    }
    shell::run(&mut simulate)?;
    println!("written: {}", repo.relative(&report).display());
    Ok(())
}
