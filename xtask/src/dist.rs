//! `cargo xtask dist`: the packages for people without Rust: wheels and npm tarballs, tried out offline.
//!
//! Built with zig as the C compiler and linker, so that no older system is needed: for glibc 2.17, and static.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{pins, repo::Repo, shell};

mod tried;

/// The sizes that are promised, in bytes.
const BINARY: u64 = 20_000_000;
const WHEEL: u64 = 8_000_000;

const MAIN: &str = "tool-reliability";

/// What is built.
struct Target {
    triple: &'static str,
    /// The platform in npm's words, if its package is made of this build.
    npm: Option<(&'static str, &'static str)>,
}

const TARGETS: [Target; 4] = [
    Target { triple: "x86_64-unknown-linux-musl", npm: Some(("linux", "x64")) },
    Target { triple: "aarch64-unknown-linux-musl", npm: Some(("linux", "arm64")) },
    Target { triple: "x86_64-unknown-linux-gnu", npm: None },
    Target { triple: "aarch64-unknown-linux-gnu", npm: None },
];

/// Builds the packages into `target/dist`, those of this machine's processor only unless `all`, and tries them out.
pub(crate) fn run(repo: &Repo, all: bool) -> Result<()> {
    let out = repo.target.join("dist");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let tools = pins::venv(repo, "tools/packaging", "packaging/requirements.txt")?;
    let here = std::env::consts::ARCH;
    let version = repo.package("tool-guard").context("tool-guard is gone")?.version.to_string();
    let mut platforms = Vec::new();
    for target in TARGETS.iter().filter(|target| all || target.triple.starts_with(here)) {
        build(repo, &tools, target, &out)?;
        if let Some((os, cpu)) = target.npm {
            let program = built(repo, target.triple);
            platforms.push(platform(repo, &out, &program, (os, cpu), &version)?);
        }
    }
    shim(repo, &out, &platforms, &version)?;
    weigh(&out)?;
    tried::run(repo, &out)
}

/// Builds a wheel.
fn build(repo: &Repo, tools: &Path, target: &Target, out: &Path) -> Result<()> {
    shell::run(repo.command("rustup").args(["target", "add", target.triple]))?;
    let compatibility =
        if target.triple.ends_with("musl") { "musllinux_1_1" } else { "manylinux2014" };
    let path = std::env::join_paths(
        std::iter::once(tools.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    let mut maturin = repo.command(tools.join("maturin"));
    maturin
        .args(["build", "--locked", "--quiet", "--zig", "--target", target.triple])
        .args(["--compatibility", compatibility, "--out"])
        .arg(out)
        .env("PATH", path)
        .env("CARGO_TARGET_DIR", repo.target.join("dist-build"));
    shell::run(&mut maturin)
}

fn built(repo: &Repo, triple: &str) -> PathBuf {
    repo.target.join("dist-build").join(triple).join("dist/tool-guard")
}

/// Packs a platform's program; returns the package's name.
fn platform(
    repo: &Repo,
    out: &Path,
    program: &Path,
    (os, cpu): (&str, &str),
    version: &str,
) -> Result<String> {
    let name = format!("@{MAIN}/{os}-{cpu}");
    let folder = repo.target.join("dist-npm").join(format!("{os}-{cpu}"));
    fresh(&folder.join("bin"))?;
    fs::copy(program, folder.join("bin/tool-guard"))?;
    let about = json!({
        "name": name,
        "version": version,
        "description": format!("The program of {MAIN} for {os} on {cpu}"),
        "license": "MIT OR Apache-2.0",
        "os": [os],
        "cpu": [cpu],
        "files": ["bin"],
        "preferUnplugged": true,
    });
    pack(repo, &folder, &about, out)?;
    Ok(name)
}

/// Packs the package that people install.
fn shim(repo: &Repo, out: &Path, platforms: &[String], version: &str) -> Result<()> {
    let folder = repo.target.join("dist-npm").join(MAIN);
    fresh(&folder)?;
    let shim = "tool-guard.cjs";
    fs::copy(repo.root.join("packaging/npm").join(shim), folder.join(shim))?;
    let optional: serde_json::Map<String, Value> =
        platforms.iter().map(|name| (name.clone(), version.into())).collect();
    let about = json!({
        "name": MAIN,
        "version": version,
        "description": "Retries, breakers, deduplication and loop detection in front of any MCP server",
        "license": "MIT OR Apache-2.0",
        "keywords": ["agents", "mcp", "reliability", "idempotency", "retry"],
        "bin": { "tool-guard": shim, MAIN: shim },
        "files": [shim],
        "engines": { "node": ">=18" },
        "optionalDependencies": optional,
    });
    pack(repo, &folder, &about, out)
}

fn pack(repo: &Repo, folder: &Path, about: &Value, out: &Path) -> Result<()> {
    fs::write(folder.join("package.json"), serde_json::to_string_pretty(about)? + "\n")?;
    for (from, to) in [
        ("packaging/README.md", "README.md"),
        ("LICENSE-MIT", "LICENSE-MIT"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
    ] {
        fs::copy(repo.root.join(from), folder.join(to))?;
    }
    let mut npm = repo.command("npm");
    npm.args(["pack", "--silent", "--pack-destination"]).arg(out).current_dir(folder);
    shell::run(&mut npm)
}

fn fresh(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(())
}

/// Shows what each package weighs, and fails beyond what is promised.
fn weigh(out: &Path) -> Result<()> {
    let mut files: Vec<_> = fs::read_dir(out)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let (name, bytes) = (file.file_name(), file.metadata()?.len());
        let name = name.to_string_lossy();
        println!("{name}: {:.1} MB", bytes as f64 / 1e6);
        ensure!(!name.ends_with(".whl") || bytes <= WHEEL, "{name} is larger than a wheel may be");
    }
    let packed = out.with_file_name("dist-npm");
    for folder in fs::read_dir(packed)? {
        let program = folder?.path().join("bin/tool-guard");
        let Ok(about) = program.metadata() else { continue };
        let bytes = about.len();
        println!("{}: {:.1} MB", program.display(), bytes as f64 / 1e6);
        ensure!(bytes <= BINARY, "{} is larger than a program may be", program.display());
    }
    Ok(())
}
