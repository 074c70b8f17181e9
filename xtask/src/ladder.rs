//! `cargo xtask ladder`: what each layer of the stack costs; `docs/performance.md` explains it.
//!
//! The binary `ladder` of the package `benches` measures; no peer is built for it.

use anyhow::Result;

use crate::{
    repo::{BENCHES, Repo},
    shell,
};

/// Prints the table; `save` writes it and the picture into `docs/`.
pub(crate) fn run(repo: &Repo, save: bool) -> Result<()> {
    shell::run(repo.cargo().args(["build", "--release", "--no-default-features"]).args([
        "--package",
        BENCHES,
        "--bin",
        "ladder",
    ]))?;
    let mut ladder = repo.command(repo.target.join("release/ladder"));
    if save {
        ladder.args(["--docs", "docs"]);
    }
    shell::run(&mut ladder)
}
