//! The npm tarballs: one package that people install, one with the program for each platform, and the plugin for OpenClaw
//! with those in it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
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
    program(&folder, &contents.program)?;
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

/// Packs the plugin for OpenClaw with the packages of these platforms, so that one file brings the program, too.
pub(super) fn plugin(repo: &Repo, out: &Path, platforms: &[String]) -> Result<()> {
    let folder = fresh(repo, "openclaw")?;
    for name in platforms {
        let from = staged(repo, name.rsplit('/').next().unwrap_or_default());
        copy_all(&from, &folder.join("node_modules").join(name))?;
    }
    pack_plugin(repo, out, &folder, platforms)
}

/// Packs the plugin with a program for this machine, to be tried out; returns the tarball.
pub(super) fn trial(repo: &Repo, version: &str, tried: &Path) -> Result<PathBuf> {
    let out = fresh(repo, "trial")?;
    let (os, cpu) = super::HERE;
    let name = format!("@{MAIN}/{os}-{cpu}");
    let folder = fresh(repo, "openclaw-trial")?;
    let platform = folder.join("node_modules").join(&name);
    fs::create_dir_all(&platform)?;
    program(&platform, tried)?;
    write(&platform, &about_platform(&name, os, cpu, version))?;
    pack_plugin(repo, &out, &folder, &[name])?;
    let packed = fs::read_dir(&out)?.next().context("npm packs nothing")??;
    Ok(packed.path())
}

fn pack_plugin(repo: &Repo, out: &Path, folder: &Path, platforms: &[String]) -> Result<()> {
    let plugin = repo.root.join("packaging/openclaw");
    for entry in fs::read_dir(&plugin)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| ["js", "json", "md"].iter().any(|it| extension == *it))
        {
            fs::copy(&path, folder.join(path.file_name().unwrap_or_default()))?;
        }
    }
    let about = fs::read_to_string(plugin.join("package.json"))?;
    write(folder, &about_plugin(serde_json::from_str(&about)?, platforms))?;
    licences(repo, folder)?;
    npm_pack(repo, out, folder)
}

/// The plugin's `package.json` with the platforms' packages inside.
fn about_plugin(mut about: Value, platforms: &[String]) -> Value {
    let version = about["version"].clone();
    let optional: Map<String, Value> =
        platforms.iter().map(|name| (name.clone(), version.clone())).collect();
    about["optionalDependencies"] = optional.into();
    about["bundleDependencies"] = platforms.into();
    about
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
    write(folder, about)?;
    fs::copy(repo.root.join("packaging/package.md"), folder.join("README.md"))?;
    licences(repo, folder)?;
    npm_pack(repo, out, folder)
}

fn npm_pack(repo: &Repo, out: &Path, folder: &Path) -> Result<()> {
    let mut npm = repo.command("npm");
    npm.args(["pack", "--silent", "--pack-destination"]).arg(out).current_dir(folder);
    shell::run(&mut npm)
}

fn write(folder: &Path, about: &Value) -> Result<()> {
    Ok(fs::write(folder.join("package.json"), serde_json::to_string_pretty(about)? + "\n")?)
}

fn licences(repo: &Repo, folder: &Path) -> Result<()> {
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(repo.root.join(file), folder.join(file))?;
    }
    Ok(())
}

fn program(folder: &Path, program: &Path) -> Result<()> {
    fs::create_dir(folder.join("bin"))?;
    fs::copy(program, folder.join("bin/tool-guard"))?;
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), copy)?;
        }
    }
    Ok(())
}

/// Where a package is put together.
fn staged(repo: &Repo, name: &str) -> PathBuf {
    repo.target.join("dist-npm").join(name)
}

/// An empty folder to pack.
fn fresh(repo: &Repo, name: &str) -> Result<PathBuf> {
    let folder = staged(repo, name);
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
    #[test]
    fn the_plugin_brings_the_platforms_packages() {
        let name = "@tool-reliability/linux-x64".to_owned();
        let plugin = json!({ "version": "1.2.3", "optionalDependencies": {} });
        let about = about_plugin(plugin, std::slice::from_ref(&name));
        assert_eq!(about["optionalDependencies"], json!({ (name.as_str()): "1.2.3" }));
        assert_eq!(about["bundleDependencies"], json!([name]));
    }
}
