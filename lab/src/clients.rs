//! `cargo lab peers`: real agents, with scripted models, against a server behind the guard, and twelve real servers.
//!
//! The agents are pinned in `lab/pins/clients/` and installed under `target/clients/`, MCP's conformance suite in
//! `lab/pins/conformance/` and `target/conformance/`, the servers in `lab/pins/servers/` and `target/servers/`: some 2 GB,
//! which is why the tests of the package `clients` are not among those of `cargo xtask test`.

use anyhow::{Result, ensure};

use xtask::{
    need::{self, CHROMIUM, GIT, POSTGRES},
    peers, pins,
    repo::Repo,
    test::{GUARD, count, guard},
};

use crate::{agents, cargo, hooks, openclaw};

/// The variable that tells the tests where the agents are; its value is absolute.
const VARIABLE: &str = "TR_CLIENTS";

/// The same for MCP's conformance suite.
const SUITE: &str = "TR_CONFORMANCE";

/// The same for the servers.
const SERVERS: &str = "TR_SERVERS";

/// Installs the agents that are missing, and runs the tests with them.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    pins::npm(repo, "clients", "lab/pins/clients")?;
    // Version 1 of PyPI's `mcp`, and what is built on it.
    pins::venv(repo, "clients/python1", "lab/pins/clients/python1.txt")?;
    pins::npm(repo, "conformance", "lab/pins/conformance")?;
    pins::npm(repo, "servers", "lab/pins/servers")?;
    pins::venv(repo, "servers/venv", "lab/pins/servers/requirements.txt")?;
    // This one needs version 1 of the SDK.
    pins::venv(repo, "servers/sqlite", "lab/pins/servers/sqlite.txt")?;
    need::ensure(repo, &[&CHROMIUM, &GIT, &POSTGRES])?;
    // The SDKs' clients are among the peers.
    let peers = peers::ensure(repo)?;
    let mut cargo = cargo(repo, "test");
    cargo
        .args(["--no-fail-fast", "--package", "clients"])
        .env(VARIABLE, repo.target.join("clients"))
        .env(SUITE, repo.target.join("conformance"))
        .env(SERVERS, repo.target.join("servers"))
        .env(peers::VARIABLE, peers)
        .env(GUARD, guard(repo)?);
    let total = count(&mut cargo)?;
    ensure!(total.passed > 0, "no test ran");
    agents::run(repo)?;
    hooks::run(repo)?;
    openclaw::run(repo)
}
