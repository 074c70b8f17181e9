//! The packages as a stranger uses them: added and installed from a registry, with no path into this repository.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use cargo_metadata::Package;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::packed;
use crate::{repo::Repo, shell};

/// What is added to a new program, for the code of the READMEs below.
const ADDED: &[&[&str]] = &[
    &["tool-reliability", "tr-retry", "http"],
    &["tr-core", "--features=http"],
    &["tower", "--features=util"],
    &["tokio", "--features=macros,rt"],
];

/// Runs the first program in the README of the facade and of a layer, and installs the binary; all offline.
pub(super) fn run(repo: &Repo, packages: &[&Package]) -> Result<()> {
    let folder = repo.target.join("xtask/stranger");
    let registry = folder.join("registry");
    fill(repo, packages, &registry)?;
    settle(&folder, &registry)?;
    // Elsewhere, so that cargo finds no settings of this repository.
    let work = tempfile::tempdir()?;
    let program = work.path().join("program");
    let cargo = |args: &[&str], at: &Path| {
        let mut cargo = repo.cargo();
        cargo.args(args).current_dir(at);
        cargo.env("CARGO_HOME", folder.join("home")).env("CARGO_TARGET_DIR", folder.join("target"));
        cargo
    };

    shell::run(&mut cargo(&["new", "--quiet", "--vcs=none", "program"], work.path()))?;
    for &added in ADDED {
        shell::run(&mut cargo(&[&["add", "--quiet"][..], added].concat(), &program))?;
    }
    for package in
        packages.iter().filter(|p| ["tool-reliability", "tr-retry"].contains(&p.name.as_str()))
    {
        let readme = fs::read_to_string(unpacked(&registry, package).join("README.md"))?;
        let code = first_program(&readme)
            .with_context(|| format!("{}: its README has no program", package.name))?;
        fs::write(program.join("src/main.rs"), code)?;
        shell::run(&mut cargo(&["run", "--quiet"], &program))?;
    }
    let mut install =
        cargo(&["install", "--quiet", "--debug", "--locked", "tool-guard"], work.path());
    shell::run(install.arg("--root").arg(work.path()))?;
    shell::run(Command::new(work.path().join("bin/tool-guard")).arg("--version"))
}

/// Lays out a registry as a folder: what others have published, and our packages.
fn fill(repo: &Repo, packages: &[&Package], registry: &Path) -> Result<()> {
    let mut vendor = repo.cargo();
    vendor.args(["vendor", "--quiet", "--locked", "--versioned-dirs"]).arg(registry);
    shell::read(&mut vendor)?;
    for package in packages {
        let packed = packed(repo, package);
        shell::run(Command::new("tar").arg("-xzf").arg(&packed).arg("-C").arg(registry))?;
        let sum = Sha256::digest(fs::read(packed)?);
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(
            unpacked(registry, package).join(".cargo-checksum.json"),
            json!({"files": {}, "package": sum}).to_string(),
        )?;
    }
    Ok(())
}

fn unpacked(registry: &Path, package: &Package) -> PathBuf {
    registry.join(format!("{}-{}", package.name, package.version))
}

/// Writes the settings of a user to whom this registry is the only one.
fn settle(folder: &Path, registry: &Path) -> Result<()> {
    let home = folder.join("home");
    fs::create_dir_all(&home)?;
    let settings = json!({
        "source": {"crates-io": {"replace-with": "folder"}, "folder": {"directory": registry}},
        "net": {"offline": true},
    });
    Ok(fs::write(home.join("config.toml"), toml::to_string(&settings)?)?)
}

fn first_program(readme: &str) -> Option<&str> {
    Some(readme.split_once("```rust\n")?.1.split_once("```")?.0)
}
