//! `cargo xtask test`: all tests, those that need only Rust and those with foreign programs.

use std::{env::consts::EXE_SUFFIX, panic::resume_unwind, path::PathBuf, process::Command, thread};

use anyhow::Result;

use crate::{
    binaries, need, peers,
    repo::Repo,
    shell,
    tally::{self, Tally},
};

/// The variable that tells a test where the guard's binary is; its value is absolute.
pub const GUARD: &str = "TR_TOOL_GUARD";

/// The same for the example of a payment whose process is killed.
const KILLED_PAYMENT: &str = "TR_KILLED_PAYMENT";

/// Packages whose tests take long, besides those with foreign programs.
const LONG: [&str; 3] = ["guides", "tool-guard", "tr-transcript"];

/// What selects all packages, with all their features: whatever is built with it is built once.
pub(crate) const ALL: [&str; 2] = ["--workspace", "--all-features"];

/// Installs what is missing and runs all tests. The guard is built together with them: `cargo xtask features` says what it
/// has more than its users', and that it builds without.
pub fn run(repo: &Repo) -> Result<Tally> {
    let foreign = repo.names_under("tests");
    let (installed, built) = thread::scope(|scope| {
        // Installing waits for the network, building for the processors.
        let installed = scope.spawn(|| Foreign::install(repo, &foreign));
        let built = binaries::built(repo, repo.cargo().arg("test").args(ALL));
        (installed.join().unwrap_or_else(|panic| resume_unwind(panic)), built)
    });
    let (peers, mut binaries) = (installed?, built?);
    let parts =
        Foreign { peers, guard: debug(repo, "tool-guard"), killed_payment: killed_payment(repo) };
    // What takes longest begins first, so that nothing is left to run alone.
    let is_long = |package: &str| LONG.contains(&package) || foreign.contains(&package);
    binaries.sort_by_key(|binary| !is_long(&binary.package));
    let ran = binaries::run(binaries, |command| parts.tell(command));
    let documented = count(repo.cargo().args(["test", "--doc", "--no-fail-fast"]).args(ALL));
    let mut total = ran?;
    total += documented?;
    Ok(total)
}

/// What the packages under `tests/` are given.
#[derive(Debug)]
pub struct Foreign {
    peers: PathBuf,
    guard: PathBuf,
    killed_payment: PathBuf,
}

impl Foreign {
    /// Installs and builds what is missing of what these packages need.
    pub fn ensure(repo: &Repo, packages: &[&str]) -> Result<Self> {
        let peers = Self::install(repo, packages)?;
        let mut build = repo.cargo();
        shell::run(build.args(["build", "--example", "killed_payment"]).args(ALL))?;
        Ok(Self { peers, guard: guard(repo)?, killed_payment: killed_payment(repo) })
    }

    /// Installs what is missing of it, and returns the folder of the peers.
    fn install(repo: &Repo, packages: &[&str]) -> Result<PathBuf> {
        let peers = peers::ensure(repo)?;
        let manifests = packages.iter().filter_map(|name| repo.package(name));
        need::ensure(repo, &need::of(manifests)?)?;
        Ok(peers)
    }

    /// Tells tests where it is.
    pub fn tell(&self, command: &mut Command) {
        command
            .env(peers::VARIABLE, &self.peers)
            .env(GUARD, &self.guard)
            .env(KILLED_PAYMENT, &self.killed_payment);
    }
}

/// Builds the guard as its users do.
pub fn guard(repo: &Repo) -> Result<PathBuf> {
    shell::run(repo.cargo().args(["build", "--package", "tool-guard"]))?;
    Ok(debug(repo, "tool-guard"))
}

/// Builds it optimized, for tests that start it thousands of times.
pub fn release_guard(repo: &Repo) -> Result<PathBuf> {
    shell::run(repo.cargo().args(["build", "--release", "--package", "tool-guard"]))?;
    Ok(repo.target.join("release").join(format!("tool-guard{EXE_SUFFIX}")))
}

/// The example, which is built with the tests.
fn killed_payment(repo: &Repo) -> PathBuf {
    debug(repo, "examples/killed_payment")
}

/// Where a program is that was built for tests.
pub(crate) fn debug(repo: &Repo, program: &str) -> PathBuf {
    repo.target.join(format!("debug/{program}{EXE_SUFFIX}"))
}

/// Runs tests and counts them.
pub fn count(cargo: &mut Command) -> Result<Tally> {
    let mut total = Tally::default();
    shell::watch(cargo, |line| {
        if let Some(binary) = tally::closing(line) {
            total += binary;
        }
    })?;
    Ok(total)
}
