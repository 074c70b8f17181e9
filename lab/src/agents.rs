//! The part of `cargo lab peers` about sessions: real agents load those of `lab/agents/sessions` before and after a
//! repair, with a model on loopback, and what they send is compared with the table in `docs/session.md`.
//!
//! The agents are pinned in `lab/pins/agents/` with the Node that pi needs, and installed under `target/agents/`: some
//! 1.4 GB.

use anyhow::Result;

use xtask::{
    pins,
    repo::Repo,
    shell,
    test::{GUARD, guard},
};

/// The variable that tells the table where the agents are; its value is absolute.
const VARIABLE: &str = "TR_AGENTS";

/// Installs the agents that are missing, and loads each session.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    pins::npm(repo, "agents", "lab/pins/agents")?;
    shell::run(
        repo.command("node")
            .arg(repo.root.join("lab/agents/run.mjs"))
            .env(VARIABLE, repo.target.join("agents"))
            .env(GUARD, guard(repo)?),
    )
}
