//! The step `lab` of `cargo xtask ci`: the workspace in `lab/` is well formed and builds, its tests pass, and the pages
//! that it writes are current.

use anyhow::Result;

use crate::{repo::Repo, shell};

pub(crate) fn check(repo: &Repo) -> Result<()> {
    let cargo = |args: &[&str], rest: &[&str]| {
        let mut cargo = repo.cargo();
        cargo.args(args).args(["--manifest-path", "lab/Cargo.toml"]);
        if args[0] != "fmt" {
            cargo.arg("--target-dir").arg(&repo.target);
        }
        shell::run(cargo.args(rest))
    };
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["clippy", "--workspace", "--all-targets"], &["--", "-D", "warnings"])?;
    // The rest are programs for real agents and quiet machines.
    cargo(&["test", "--package", "lab", "--package", "migrating", "--package", "simulate"], &[])?;
    cargo(&["run", "--package", "lab"], &["--", "coverage", "--check"])?;
    cargo(&["run", "--package", "lab"], &["--", "weigh", "--check"])
}
