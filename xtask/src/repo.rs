//! Where things are: the workspace's root, its target folder and its packages.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use cargo_metadata::{MetadataCommand, Package, TargetKind};

use crate::shell;

/// The workspace that the command was started in.
#[derive(Debug)]
pub struct Repo {
    /// The workspace's root.
    pub root: PathBuf,
    /// The target folder.
    pub target: PathBuf,
    /// The packages of the workspace.
    pub packages: Vec<Package>,
}

impl Repo {
    /// The workspace around the current folder.
    pub fn open() -> Result<Self> {
        Self::found(&mut MetadataCommand::new())
    }

    /// The workspace of this manifest.
    pub fn at(manifest: &Path) -> Result<Self> {
        Self::found(MetadataCommand::new().manifest_path(manifest))
    }

    fn found(command: &mut MetadataCommand) -> Result<Self> {
        let found = command
            .no_deps()
            .exec()
            .context("`cargo metadata` does not understand this workspace")?;
        Ok(Self {
            root: found.workspace_root.into(),
            target: found.target_directory.into(),
            packages: found.packages,
        })
    }

    /// A command that runs at the root, whatever folder the user is in.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// The cargo that started this, at the root.
    pub fn cargo(&self) -> Command {
        let mut cargo = self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // What it told this program of its package would have some crates built again (ring looks at them).
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            let of_package = ["CARGO_BIN_", "CARGO_MANIFEST_", "CARGO_PKG_", "OUT_DIR"];
            if of_package.iter().any(|prefix| name.starts_with(prefix)) {
                cargo.env_remove(&*name);
            }
        }
        cargo
    }

    /// The package of this name.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name.as_str() == name)
    }

    /// Names of the packages below a folder of the root.
    pub fn names_under(&self, folder: &str) -> Vec<&str> {
        let folder = self.root.join(folder);
        self.packages
            .iter()
            .filter(|package| package.manifest_path.as_std_path().starts_with(&folder))
            .map(|package| package.name.as_str())
            .collect()
    }

    /// The innermost package that a file, named from the root, belongs to.
    pub fn package_of(&self, path: &str) -> Option<&Package> {
        let path = self.root.join(path);
        self.packages
            .iter()
            .filter(|package| package.manifest_path.parent().is_some_and(|f| path.starts_with(f)))
            .max_by_key(|package| package.manifest_path.as_str().len())
    }

    /// Path from the root and text of every file that is, or could be, committed; binary files are left out.
    pub fn texts(&self) -> Result<Vec<(String, String)>> {
        let listed = shell::read(self.command("git").args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ]))?;
        Ok(listed
            .split_terminator('\0')
            .filter_map(|path| {
                Some((path.to_owned(), fs::read_to_string(self.root.join(path)).ok()?))
            })
            .collect())
    }

    /// A path as the repository's own files would spell it.
    pub fn relative<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// The package that measures.
pub const BENCHES: &str = "benches";

/// Whether a package has a target of this kind and name.
pub fn has_target(package: &Package, kind: &TargetKind, name: &str) -> bool {
    package.targets.iter().any(|target| target.kind.contains(kind) && target.name == name)
}
