//! The npm tarballs: one package that people install, and one with the program for each platform.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::{repo::Repo, shell};

/// The package that people install; those of the platforms are in a scope of the same name.
const MAIN: &str = "tool-reliability";

/// What runs the platform's program.
const SHIM: &str = "tool-guard.cjs";

/// What a platform's package holds.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) program: PathBuf,
    pub(super) sbom: PathBuf,
    pub(super) notices: PathBuf,
}

/// Packs a platform's program; returns the package's name.
pub(super) fn platform(
    repo: &Repo,
    out: &Path,
    (os, cpu): (&str, &str),
    version: &str,
    contents: &Contents,
) -> Result<String> {
    let folder = fresh(repo, &format!("{os}-{cpu}"))?;
    fs::create_dir(folder.join("bin"))?;
    fs::copy(&contents.program, folder.join("bin/tool-guard"))?;
    fs::copy(&contents.sbom, folder.join("sbom.cyclonedx.json"))?;
    fs::copy(&contents.notices, folder.join("THIRD-PARTY.txt"))?;
    let name = format!("@{MAIN}/{os}-{cpu}");
    pack(repo, out, &folder, &about_platform(&name, os, cpu, version))?;
    Ok(name)
}

/// Packs the package that people install.
pub(super) fn main(repo: &Repo, out: &Path, version: &str, platforms: &[String]) -> Result<()> {
    let folder = fresh(repo, MAIN)?;
    fs::copy(repo.root.join("packaging/npm").join(SHIM), folder.join(SHIM))?;
    pack(repo, out, &folder, &about_main(version, platforms))
}

fn about_platform(name: &str, os: &str, cpu: &str, version: &str) -> Value {
    json!({
        "name": name,
        "version": version,
        "description": format!("The program of {MAIN} for {os} on {cpu}"),
        "license": "MIT OR Apache-2.0",
        "os": [os],
        "cpu": [cpu],
        "files": ["bin", "LICENSE-*", "THIRD-PARTY.txt", "sbom.cyclonedx.json"],
        "preferUnplugged": true,
    })
}

fn about_main(version: &str, platforms: &[String]) -> Value {
    let optional: Map<String, Value> =
        platforms.iter().map(|name| (name.clone(), version.into())).collect();
    json!({
        "name": MAIN,
        "version": version,
        "description": "Puts retries, breakers, deduplication and loop detection in front of any MCP server, and repairs agents' sessions.",
        "license": "MIT OR Apache-2.0",
        "keywords": ["agents", "mcp", "reliability", "idempotency", "retry"],
        "bin": { "tool-guard": SHIM, MAIN: SHIM },
        "files": [SHIM, "LICENSE-*"],
        "engines": { "node": ">=18" },
        "optionalDependencies": optional,
    })
}

fn pack(repo: &Repo, out: &Path, folder: &Path, about: &Value) -> Result<()> {
    fs::write(folder.join("package.json"), serde_json::to_string_pretty(about)? + "\n")?;
    for (from, to) in [
        ("packaging/package.md", "README.md"),
        ("LICENSE-MIT", "LICENSE-MIT"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
    ] {
        fs::copy(repo.root.join(from), folder.join(to))?;
    }
    let mut npm = repo.command("npm");
    npm.args(["pack", "--silent", "--pack-destination"]).arg(out).current_dir(folder);
    shell::run(&mut npm)
}

/// An empty folder to pack.
fn fresh(repo: &Repo, name: &str) -> Result<PathBuf> {
    let folder = repo.target.join("dist-npm").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_package_runs_a_script_when_it_is_installed() {
        let name = "@tool-reliability/linux-x64".to_owned();
        let platform = about_platform(&name, "linux", "x64", "1.2.3");
        let main = about_main("1.2.3", std::slice::from_ref(&name));
        assert_eq!(platform.get("scripts"), None);
        assert_eq!(main.get("scripts"), None);
        assert_eq!(main["optionalDependencies"][&name], platform["version"]);
    }
}
