//! `cargo xtask deny`: licences, sources and bans of all dependencies, by cargo-deny and `deny.toml`.
//!
//! Advisories are left out: their database can't be fetched everywhere.

use anyhow::Result;

use crate::{pins, repo::Repo, shell};

pub(crate) fn run(repo: &Repo) -> Result<()> {
    let programs = pins::venv(repo, "tools/deny", "xtask/tools/deny.txt")?;
    shell::run(
        repo.command(programs.join("cargo-deny")).args(["check", "bans", "licenses", "sources"]),
    )
}
