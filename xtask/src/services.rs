//! Services that come with Debian's packages: neither started when installed nor at the next boot.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use anyhow::{Context as _, Result};

use crate::{repo::Repo, shell};

/// Who is asked before a package's script starts a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// The answer "not allowed", to whatever is asked.
const NEVER: &str = "#!/bin/sh\nexit 101\n";

/// While it lives, what is installed starts no service.
#[derive(Debug)]
pub(crate) struct Asleep {
    services: Vec<&'static str>,
    policy: Option<Policy>,
}

/// A policy of ours; gone when dropped.
#[derive(Debug)]
struct Policy(&'static Path);

impl Asleep {
    pub(crate) fn new(services: impl Iterator<Item = &'static str>) -> Result<Self> {
        let services: Vec<_> = services.collect();
        let policy = if services.is_empty() { None } else { Policy::set(Path::new(POLICY))? };
        Ok(Self { services, policy })
    }

    /// Now that they are installed, keeps them from starting at the next boot.
    pub(crate) fn disable(self, repo: &Repo) -> Result<()> {
        for service in &self.services {
            shell::run(repo.command("update-rc.d").args([service, "disable"]))?;
        }
        drop(self.policy);
        Ok(())
    }
}

impl Policy {
    /// `None` if the machine has a policy: that one is the owner's, and stays.
    fn set(path: &'static Path) -> Result<Option<Self>> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path);
        match file {
            Ok(mut file) => {
                let policy = Self(path);
                file.write_all(NEVER.as_bytes())?;
                // Whatever the umask says.
                file.set_permissions(Permissions::from_mode(0o755))?;
                Ok(Some(policy))
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(self.0) {
            eprintln!("warning: {} stays, it cannot be removed: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_set_once_and_goes_with_its_owner() {
        let path = std::env::temp_dir().join(format!("policy-{}", std::process::id()));
        let path: &'static Path = path.leak();
        let policy = Policy::set(path).unwrap().expect("there was none");
        assert_eq!(fs::read_to_string(path).unwrap(), NEVER);
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(Policy::set(path).unwrap().is_none(), "the one that is there stays");
        assert!(path.exists());
        drop(policy);
        assert!(!path.exists());
    }
}
