//! Programs from outside the Rust toolchain: found, installed where that is ours to do, else named.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use cargo_metadata::Package;

use crate::{repo::Repo, services::Asleep, shell};

/// A program that some command needs.
#[derive(Debug)]
pub struct Need {
    program: &'static str,
    /// What is run to find out: the program itself, or a shell that looks for it.
    asked: &'static str,
    /// Arguments with which that ends well if the program is usable.
    probe: &'static [&'static str],
    /// Debian's packages that bring it.
    debian: &'static [&'static str],
    /// The service that the packages would start; it is kept from starting.
    service: Option<&'static str>,
}

/// Node.js.
pub const NODE: Need = Need::program("node", &["nodejs"]);
/// npm.
pub const NPM: Need = Need::program("npm", &["npm"]);
/// Python, with `venv`.
pub const PYTHON: Need = Need {
    probe: &["-c", "import ensurepip, venv"],
    ..Need::program("python3", &["python3", "python3-venv"])
};
/// valgrind.
pub const VALGRIND: Need = Need::program("valgrind", &["valgrind"]);
/// GNU's, which tells what a program took.
pub const TIME: Need = Need::program("time", &["time"]);
const CURL: Need = Need::program("curl", &["curl"]);
/// A compiler of C++.
pub const CPP: Need = Need::program("c++", &["g++"]);
/// git.
pub const GIT: Need = Need::program("git", &["git"]);
/// Chromium.
pub const CHROMIUM: Need = Need::program("chromium", &["chromium"]);
/// PostgreSQL's server, which Debian keeps out of the PATH.
pub const POSTGRES: Need = Need {
    asked: "sh",
    probe: &["-c", "postgres --version || ls /usr/lib/postgresql/*/bin/postgres"],
    service: Some("postgresql"),
    ..Need::program("postgres", &["postgresql"])
};
const REDIS: Need =
    Need { service: Some("redis-server"), ..Need::program("redis-server", &["redis-server"]) };
/// With promtool; the package recommends more, which is left out.
const PROMETHEUS: Need =
    Need { service: Some("prometheus"), ..Need::program("prometheus", &["prometheus"]) };

/// What a package can ask for in its manifest: `[package.metadata.xtask]`, `needs = ["PROGRAM"]`.
const BY_PACKAGES: &[&Need] = &[&CURL, &NODE, &POSTGRES, &PROMETHEUS, &PYTHON, &REDIS];

impl Need {
    const fn program(program: &'static str, debian: &'static [&'static str]) -> Self {
        Self { program, asked: program, probe: &["--version"], debian, service: None }
    }
}

/// What the manifests of these packages ask for, each once.
pub fn of<'p>(packages: impl Iterator<Item = &'p Package>) -> Result<Vec<&'static Need>> {
    let mut needs: Vec<&Need> = Vec::new();
    for package in packages {
        let asked = package.metadata["xtask"]["needs"].as_array().into_iter().flatten();
        for program in asked.map(|program| program.as_str().unwrap_or("?")) {
            let need = known(program).with_context(|| format!("package {}", package.name))?;
            if !needs.iter().any(|other| other.program == program) {
                needs.push(need);
            }
        }
    }
    Ok(needs)
}

fn known(program: &str) -> Result<&'static Need> {
    let need = BY_PACKAGES.iter().find(|need| need.program == program).copied();
    need.with_context(|| format!("no package is known for {program}: add it to xtask/src/need.rs"))
}

/// What to do about programs that are missing.
#[derive(Debug, PartialEq)]
enum Plan {
    Nothing,
    Install(Vec<&'static str>),
    Refuse(String),
}

fn plan(missing: &[&Need], may_install: bool) -> Plan {
    if missing.is_empty() {
        return Plan::Nothing;
    }
    let packages: Vec<_> = missing.iter().flat_map(|need| need.debian).copied().collect();
    if may_install {
        return Plan::Install(packages);
    }
    let programs: Vec<_> = missing.iter().map(|need| need.program).collect();
    Plan::Refuse(format!(
        "missing or not usable: {}. Install it (on Debian: `apt-get install {}`; root there gets it installed by itself) and run this again.",
        programs.join(", "),
        packages.join(" "),
    ))
}

/// Makes sure that the programs are there.
pub fn ensure(repo: &Repo, needs: &[&Need]) -> Result<()> {
    let missing: Vec<_> =
        needs.iter().copied().filter(|need| !shell::works(need.asked, need.probe)).collect();
    match plan(&missing, is_debian() && is_root()) {
        Plan::Nothing => Ok(()),
        Plan::Refuse(why) => bail!(why),
        Plan::Install(packages) => {
            let apt = || {
                let mut apt = repo.command("apt-get");
                apt.env("DEBIAN_FRONTEND", "noninteractive");
                // Another step may be installing something.
                apt.args(["-o", "DPkg::Lock::Timeout=600"]);
                apt
            };
            shell::run(apt().args(["update", "-qq"]))?;
            let asleep = Asleep::new(missing.iter().filter_map(|need| need.service))?;
            shell::run(
                apt().args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages),
            )?;
            asleep.disable(repo)
        }
    }
}

fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists()
}

fn is_root() -> bool {
    shell::read(std::process::Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_missing_needs_nothing() {
        assert_eq!(plan(&[], false), Plan::Nothing);
    }

    #[test]
    fn debian_as_root_installs() {
        assert_eq!(plan(&[&NODE, &NPM], true), Plan::Install(vec!["nodejs", "npm"]));
    }

    #[test]
    fn elsewhere_the_message_names_program_and_package() {
        let Plan::Refuse(why) = plan(&[&CPP, &PYTHON], false) else { panic!("must refuse") };
        assert!(why.contains("c++, python3"), "{why}");
        assert!(why.contains("apt-get install g++ python3 python3-venv"), "{why}");
    }

    #[test]
    fn a_package_asks_for_what_is_known() {
        assert_eq!(known("redis-server").unwrap().debian, ["redis-server"]);
        let error = known("memcached").unwrap_err().to_string();
        assert_eq!(error, "no package is known for memcached: add it to xtask/src/need.rs");
    }
}
