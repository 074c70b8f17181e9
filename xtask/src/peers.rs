//! The foreign programs that the packages under `tests/` talk to: MCP servers from npm, the MCP client from PyPI.
//!
//! They are pinned in `xtask/peers/` and installed under `target/peers/`: `node_modules/` and `venv/`.

use std::path::PathBuf;

use anyhow::Result;

use crate::{pins, repo::Repo};

/// The variable that tells a test where the peers are; its value is absolute.
pub const VARIABLE: &str = "TR_PEERS";

/// Installs the peers that are missing and returns their folder.
pub fn ensure(repo: &Repo) -> Result<PathBuf> {
    pins::npm(repo, "peers", "xtask/peers")?;
    pins::venv(repo, "peers/venv", "xtask/peers/requirements.txt")?;
    Ok(repo.target.join("peers"))
}
