//! The part of `cargo lab peers` about OpenClaw: the plugin of `packaging/openclaw` in the real one, with a scripted
//! model, compared with the table in its README. One file brings the plugin and the guard, as in a release.
//!
//! OpenClaw is pinned in `lab/pins/openclaw/` with the Node that it needs, and installed under `target/openclaw/`: some
//! 700 MB.

use anyhow::Result;

use xtask::{
    dist, pins,
    repo::Repo,
    shell,
    test::{GUARD, guard},
};

/// The variable that tells the cases where OpenClaw is; its value is absolute.
const VARIABLE: &str = "TR_OPENCLAW";

/// The variable that tells them the plugin's tarball.
const PLUGIN: &str = "TR_OPENCLAW_PLUGIN";

/// Installs OpenClaw if it is missing, and runs the cases of the table.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    pins::npm(repo, "openclaw", "lab/pins/openclaw")?;
    let guard = guard(repo)?;
    shell::run(
        repo.command("node")
            .arg(repo.root.join("packaging/openclaw/acceptance/run.mjs"))
            .env(VARIABLE, repo.target.join("openclaw"))
            .env(PLUGIN, dist::plugin(repo, &guard)?)
            .env(GUARD, guard),
    )
}
