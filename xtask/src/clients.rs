//! `cargo xtask peers`: real agents, with scripted models, against a server behind the guard.
//!
//! They are pinned in `xtask/clients/` and installed under `target/clients/`: some 1.1 GB, which is why the tests of the
//! package `clients` are not among those of `cargo xtask test`.

use anyhow::{Result, ensure};

use crate::{
    pins,
    repo::Repo,
    test::{GUARD, count, guard},
};

/// The package whose tests they are.
pub(crate) const PACKAGE: &str = "clients";

/// The variable that tells the tests where the agents are; its value is absolute.
const VARIABLE: &str = "TR_CLIENTS";

/// Installs the agents that are missing, and runs the tests with them.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    pins::npm(repo, "clients", "xtask/clients")?;
    let mut cargo = repo.cargo();
    cargo
        .args(["test", "--no-fail-fast", "--package", PACKAGE])
        .env(VARIABLE, repo.target.join("clients"))
        .env(GUARD, guard(repo)?);
    let total = count(&mut cargo)?;
    ensure!(total.passed > 0, "no test ran");
    Ok(())
}
