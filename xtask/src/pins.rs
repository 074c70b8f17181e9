//! Pinned packages from npm, PyPI and the registry of crates, installed under the target folder once for each set of pins.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{
    need::{self, NODE, NPM, PYTHON},
    repo::Repo,
    shell,
};

/// Its content, beside what is installed, is the pins that were installed.
const STAMP: &str = ".pins";

/// Installs a requirements file into a virtual environment and returns the folder of its programs.
pub fn venv(repo: &Repo, folder: &str, requirements: &str) -> Result<PathBuf> {
    let folder = repo.target.join(folder);
    let requirements = repo.root.join(requirements);
    once(&folder, &[&requirements], || {
        need::ensure(repo, &[&PYTHON])?;
        shell::run(repo.command("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        shell::run(
            repo.command(folder.join("bin/pip"))
                .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
                .arg(&requirements),
        )
    })?;
    Ok(folder.join("bin"))
}

/// Installs the lock file of `pins` into `folder/node_modules`.
pub fn npm(repo: &Repo, folder: &str, pins: &str) -> Result<()> {
    let folder = repo.target.join(folder);
    let pins = ["package.json", "package-lock.json"].map(|file| repo.root.join(pins).join(file));
    need::ensure(repo, &[&NODE, &NPM])?;
    once(&folder.join("node_modules"), &[&pins[0], &pins[1]], || {
        fs::create_dir_all(&folder)?;
        for file in &pins {
            fs::copy(file, folder.join(file.file_name().unwrap_or_default()))?;
        }
        shell::run(
            repo.command("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
                .arg("--prefix")
                .arg(&folder),
        )
    })
}

/// Builds the program of a crate, pinned as `NAME VERSION`, and returns its path: unoptimized, which takes the least time.
pub fn program(repo: &Repo, folder: &str, pin: &str, features: &[&str]) -> Result<PathBuf> {
    let folder = repo.target.join(folder);
    let pin = repo.root.join(pin);
    let text = fs::read_to_string(&pin).with_context(|| format!("{}", pin.display()))?;
    let (name, version) = text.trim().split_once(' ').context("a pin is `NAME VERSION`")?;
    once(&folder, &[&pin], || {
        let mut cargo = repo.cargo();
        cargo.args(["install", name, "--version", version, "--locked", "--debug", "--force"]);
        cargo.args(["--quiet", "--no-track", "--no-default-features"]);
        cargo.arg("--features").arg(features.join(","));
        cargo.arg("--root").arg(&folder).env("CARGO_PROFILE_DEV_DEBUG", "0");
        shell::run(&mut cargo)
    })?;
    Ok(folder.join("bin").join(name))
}

/// Runs `install` unless `folder` carries the stamp of the same pins.
fn once(folder: &Path, pins: &[&Path], install: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut wanted = String::new();
    for file in pins {
        let text = fs::read_to_string(file);
        wanted += &text.with_context(|| format!("{} cannot be read", file.display()))?;
    }
    let stamp = folder.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn installs_once_for_each_set_of_pins() {
        let folder = std::env::temp_dir().join(format!("xtask-pins-{}", std::process::id()));
        let pins = folder.join("pins.txt");
        let runs = Cell::new(0);
        let install = || {
            once(&folder, &[&pins], || {
                runs.set(runs.get() + 1);
                Ok(())
            })
        };
        fs::create_dir_all(&folder).unwrap();
        fs::write(&pins, "peer==1").unwrap();
        install().unwrap();
        install().unwrap();
        assert_eq!(runs.get(), 1);
        fs::write(&pins, "peer==2").unwrap();
        install().unwrap();
        assert_eq!(runs.get(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_failed_install_leaves_no_stamp() {
        let folder = std::env::temp_dir().join(format!("xtask-fail-{}", std::process::id()));
        let pins = folder.join("pins.txt");
        fs::create_dir_all(&folder).unwrap();
        fs::write(&pins, "peer==1").unwrap();
        once(&folder, &[&pins], || anyhow::bail!("no network")).unwrap_err();
        assert!(!folder.join(STAMP).exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
