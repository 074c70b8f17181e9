//! Programs from outside the Rust toolchain: found, installed where that is ours to do, else named.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{repo::Repo, shell};

/// A program that some command needs.
#[derive(Debug)]
pub(crate) struct Need {
    program: &'static str,
    /// Arguments with which the program ends well if it is usable.
    probe: &'static [&'static str],
    /// Debian's packages that bring it.
    debian: &'static [&'static str],
}

pub(crate) const NODE: Need = Need { program: "node", probe: &["--version"], debian: &["nodejs"] };
pub(crate) const NPM: Need = Need { program: "npm", probe: &["--version"], debian: &["npm"] };
pub(crate) const PYTHON: Need = Need {
    program: "python3",
    probe: &["-c", "import ensurepip, venv"],
    debian: &["python3", "python3-venv"],
};
pub(crate) const VALGRIND: Need =
    Need { program: "valgrind", probe: &["--version"], debian: &["valgrind"] };
pub(crate) const CPP: Need = Need { program: "c++", probe: &["--version"], debian: &["g++"] };

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
pub(crate) fn ensure(repo: &Repo, needs: &[&Need]) -> Result<()> {
    let missing: Vec<_> =
        needs.iter().copied().filter(|need| !shell::works(need.program, need.probe)).collect();
    match plan(&missing, is_debian() && is_root()) {
        Plan::Nothing => Ok(()),
        Plan::Refuse(why) => bail!(why),
        Plan::Install(packages) => {
            let apt = || {
                let mut apt = repo.command("apt-get");
                apt.env("DEBIAN_FRONTEND", "noninteractive");
                apt
            };
            shell::run(apt().args(["update", "-qq"]))?;
            shell::run(
                apt().args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages),
            )
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
}
