//! `cargo xtask package`: every crate can be packed as a registry wants it.

use anyhow::{Context as _, Result, ensure};

use crate::{repo::Repo, shell};

/// What a package holds beside its code.
const FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Packs all crates into `target/package`; `build` also compiles each from its package alone.
pub(crate) fn run(repo: &Repo, build: bool) -> Result<()> {
    let names = repo.names_under("crates");
    let of_each = |args: &[&str]| {
        let mut cargo = repo.cargo();
        cargo.args(["package", "--allow-dirty", "--quiet"]).args(args);
        for name in &names {
            cargo.args(["--package", name]);
        }
        cargo
    };
    for name in &names {
        let mut cargo = repo.cargo();
        cargo.args(["package", "--allow-dirty", "--quiet", "--list", "--package", name]);
        let listed = shell::read(&mut cargo)?;
        for file in FILES {
            ensure!(listed.lines().any(|line| line == *file), "{name}: its package has no {file}");
        }
    }
    let args: &[&str] = if build { &[] } else { &["--no-verify"] };
    shell::run(&mut of_each(args)).context("a crate cannot be packed")?;
    println!("{} crates are packed", names.len());
    Ok(())
}
