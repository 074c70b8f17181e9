//! `cargo xtask test`: all tests, first those that need only Rust, then those with foreign programs.

use std::{env::consts::EXE_SUFFIX, path::PathBuf, process::Command};

use anyhow::{Result, ensure};

use crate::{
    clients, need, peers,
    repo::{BENCHES, Repo},
    shell,
    tally::{self, Tally},
};

/// The variable that tells a test where the guard's binary is; its value is absolute.
pub(crate) const GUARD: &str = "TR_TOOL_GUARD";

/// The same for the example of a payment whose process is killed.
const KILLED_PAYMENT: &str = "TR_KILLED_PAYMENT";

/// Installs what is missing and runs all tests; the last lines printed are `cargo test`'s own.
pub(crate) fn run(repo: &Repo) -> Result<Tally> {
    let foreign = repo.names_under("tests");
    let parts = Foreign::ensure(repo, &foreign)?;

    let mut rust = cargo_test(repo);
    rust.args(rust_only(repo));
    let mut total = count(&mut rust)?;
    total += count(
        repo.cargo()
            .args(["test", "--no-fail-fast", "--no-default-features"])
            .args(["--package", BENCHES]),
    )?;
    if !foreign.is_empty() {
        let mut with_parts = cargo_test(repo);
        parts.tell(&mut with_parts);
        for name in &foreign {
            with_parts.args(["--package", name]);
        }
        total += count(&mut with_parts)?;
    }
    ensure!(total.passed > 0, "no test ran");
    Ok(total)
}

/// What the packages under `tests/` are given.
#[derive(Debug)]
pub(crate) struct Foreign {
    peers: PathBuf,
    guard: PathBuf,
    killed_payment: PathBuf,
}

impl Foreign {
    /// Installs and builds what is missing of what these packages need.
    pub(crate) fn ensure(repo: &Repo, packages: &[&str]) -> Result<Self> {
        let peers = peers::ensure(repo)?;
        let manifests = packages.iter().filter_map(|name| repo.package(name));
        need::ensure(repo, &need::of(manifests)?)?;
        Ok(Self { peers, guard: guard(repo)?, killed_payment: killed_payment(repo)? })
    }

    /// Tells tests where it is.
    pub(crate) fn tell(&self, cargo: &mut Command) {
        cargo
            .env(peers::VARIABLE, &self.peers)
            .env(GUARD, &self.guard)
            .env(KILLED_PAYMENT, &self.killed_payment);
    }
}

/// Builds the guard as its users do.
pub(crate) fn guard(repo: &Repo) -> Result<PathBuf> {
    shell::run(repo.cargo().args(["build", "--package", "tool-guard"]))?;
    Ok(repo.target.join("debug").join(format!("tool-guard{EXE_SUFFIX}")))
}

/// Builds it optimised, for tests that start it thousands of times.
pub(crate) fn release_guard(repo: &Repo) -> Result<PathBuf> {
    shell::run(repo.cargo().args(["build", "--release", "--package", "tool-guard"]))?;
    Ok(repo.target.join("release").join(format!("tool-guard{EXE_SUFFIX}")))
}

/// Builds the example with the features that the tests are built with, so that both share what they depend on.
fn killed_payment(repo: &Repo) -> Result<PathBuf> {
    let mut build = repo.cargo();
    build.args(["build", "--all-features", "--example", "killed_payment"]).args(rust_only(repo));
    shell::run(&mut build)?;
    Ok(repo.target.join("debug").join("examples").join(format!("killed_payment{EXE_SUFFIX}")))
}

/// What tells cargo to take the packages whose tests need only Rust.
fn rust_only(repo: &Repo) -> Vec<&str> {
    let foreign = repo.names_under("tests").into_iter();
    let excluded =
        [BENCHES, clients::PACKAGE].into_iter().chain(foreign).flat_map(|name| ["--exclude", name]);
    ["--workspace"].into_iter().chain(excluded).collect()
}

fn cargo_test(repo: &Repo) -> Command {
    let mut cargo = repo.cargo();
    cargo.args(["test", "--all-features", "--no-fail-fast"]);
    cargo
}

/// Runs tests and counts them.
pub(crate) fn count(cargo: &mut Command) -> Result<Tally> {
    let mut total = Tally::default();
    shell::watch(cargo, |line| {
        if let Some(binary) = tally::closing(line) {
            total += binary;
        }
    })?;
    Ok(total)
}
