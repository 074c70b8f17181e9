//! `cargo xtask dist`: the packages for people without Rust: wheels, npm tarballs and the plugin for OpenClaw, tried out offline.
//!
//! Built with zig as the C compiler and linker, so that no other system is needed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use self::{linked::PROGRAM, notices::Shipped};
use crate::{
    need::{self, NODE, NPM},
    pins,
    repo::Repo,
    shell,
};

mod linked;
mod notices;
mod npm;
mod sbom;
mod tried;

/// The sizes that are promised, in bytes.
const BINARY: u64 = 20_000_000;
const WHEEL: u64 = 8_000_000;

/// What wheels take as notices, beside what is committed there.
const NOTICES: &str = "packaging/licences/THIRD-PARTY.txt";

/// What is built. It is linked statically, so it runs on every Linux, whatever C library is there.
#[derive(Debug)]
struct Target {
    triple: &'static str,
    /// The platform in npm's words.
    npm: (&'static str, &'static str),
}

const TARGETS: [Target; 2] = [
    Target { triple: "x86_64-unknown-linux-musl", npm: ("linux", "x64") },
    Target { triple: "aarch64-unknown-linux-musl", npm: ("linux", "arm64") },
];

/// This machine, in npm's words.
const HERE: (&str, &str) =
    (std::env::consts::OS, if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" });

/// Which systems pip and uv install a wheel on: those with glibc 2.17 or newer, and those with musl.
const SYSTEMS: [&str; 2] = ["manylinux2014", "musllinux_1_1"];

/// Builds the packages into `target/dist`, those of this machine's processor only unless `all`, and tries them out.
pub(crate) fn run(repo: &Repo, all: bool) -> Result<()> {
    need::ensure(repo, &[&NODE, &NPM])?;
    let tools = pins::venv(repo, "tools/packaging", "packaging/requirements.txt")?;
    let out = repo.target.join("dist");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let version = version(repo)?;
    let (commit, date) = (commit(repo)?, date(repo)?);
    let mut platforms = Vec::new();
    let here = std::env::consts::ARCH;
    for target in TARGETS.iter().filter(|target| all || target.triple.starts_with(here)) {
        let contents = build(repo, &tools, target, [&commit, &date], &out)?;
        let size = contents.program.metadata()?.len();
        println!("{} for {}: {:.1} MB", PROGRAM, target.triple, size as f64 / 1e6);
        ensure!(size <= BINARY, "the program for {} is larger than promised", target.triple);
        platforms.push(npm::platform(repo, &out, target.npm, &version, &contents)?);
    }
    npm::main(repo, &out, &version, &platforms)?;
    npm::plugin(repo, &out, &platforms)?;
    weigh(&out)?;
    sum(repo, &out)?;
    tried::run(repo, &tools, &commit, &out)
}

/// Packs the plugin for OpenClaw with this program, as a release has it; returns the tarball.
pub fn plugin(repo: &Repo, program: &Path) -> Result<PathBuf> {
    npm::trial(repo, &version(repo)?, program)
}

fn version(repo: &Repo) -> Result<String> {
    Ok(repo.package(PROGRAM).context("tool-guard is gone")?.version.to_string())
}

/// What is built, for `tool-guard --version`: the commit, with `-dirty` behind it if files differ from it.
fn commit(repo: &Repo) -> Result<String> {
    let mut git = repo.command("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    Ok(shell::read(&mut git)?.trim().to_owned())
}

/// When the commit was made, in seconds since 1970.
fn date(repo: &Repo) -> Result<String> {
    let mut git = repo.command("git");
    Ok(shell::read(git.args(["log", "-1", "--format=%ct"]))?.trim().to_owned())
}

/// Flags of rustc by which the program does not name this machine's folders, separated as cargo wants them.
fn remapped(repo: &Repo) -> Result<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let home = home.context("cargo has no folder")?;
    let names = [(repo.root.as_path(), "/tool-guard"), (&home, "/cargo")];
    let flags = names.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    Ok(flags.join("\u{1f}"))
}

/// Builds a wheel.
fn build(
    repo: &Repo,
    tools: &Path,
    target: &Target,
    [commit, date]: [&str; 2],
    out: &Path,
) -> Result<npm::Contents> {
    shell::run(repo.command("rustup").args(["target", "add", target.triple]))?;
    let build = repo.target.join("dist-build");
    let built = build.join(target.triple);
    fs::create_dir_all(&built)?;
    let parts = linked::parts(repo, target.triple)?;
    let notices = repo.root.join(NOTICES);
    fs::write(&notices, notices::third_party(&parts, &shipped(repo, tools)?)?)?;
    let sbom = built.join("tool-guard.cyclonedx.json");
    let text = serde_json::to_string_pretty(&sbom::cyclonedx(&parts, target.triple))?;
    fs::write(&sbom, text + "\n")?;

    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [tools.to_owned()].into_iter().chain(std::env::split_paths(&path));
    let mut maturin = repo.command(tools.join("maturin"));
    maturin
        .args(["build", "--locked", "--quiet", "--zig", "--target", target.triple])
        .args(["--compression-level", "9", "--compatibility"])
        .args(SYSTEMS)
        .arg("--sbom-include")
        .arg(&sbom)
        .arg("--out")
        .arg(out)
        .env("PATH", std::env::join_paths(path)?)
        .env("CARGO_TARGET_DIR", &build)
        // The same bytes, wherever and whenever it is built.
        .env("SOURCE_DATE_EPOCH", date)
        .env("CARGO_ENCODED_RUSTFLAGS", remapped(repo)?)
        .env("TOOL_GUARD_COMMIT", commit);
    shell::run(&mut maturin)?;
    let contents = npm::Contents {
        program: built.join("dist").join(PROGRAM),
        sbom,
        notices: built.join("THIRD-PARTY.txt"),
    };
    fs::rename(&notices, &contents.notices)?;
    Ok(contents)
}

/// The texts of licences that no crate's package brings.
fn shipped(repo: &Repo, tools: &Path) -> Result<Shipped> {
    let ours = |file: &str| fs::read_to_string(repo.root.join(file));
    let mit = ours("LICENSE-MIT")?;
    let (_, mit) = mit.split_once("\nPermission").context("LICENSE-MIT grants no permission")?;
    let mut python = repo.command(tools.join("python3"));
    python.args(["-c", "import ziglang; print(ziglang.__path__[0])"]);
    let zig = PathBuf::from(shell::read(&mut python)?.trim());
    let musl = fs::read_to_string(zig.join("lib/libc/musl/COPYRIGHT"));
    Ok(Shipped {
        apache: ours("LICENSE-APACHE")?,
        mit: format!("Permission{mit}"),
        musl: musl.context("zig brings no licence of musl")?,
    })
}

/// Writes the packages' checksums beside them, to compare with those of another build.
fn sum(repo: &Repo, out: &Path) -> Result<()> {
    let mut sums = repo.command("sh");
    sums.args(["-c", "sha256sum -- *.whl *.tgz"]).current_dir(out);
    Ok(fs::write(out.join("SHA256SUMS"), shell::read(&mut sums)?)?)
}

/// Shows what each package weighs, and fails beyond what is promised.
fn weigh(out: &Path) -> Result<()> {
    let mut files: Vec<_> = fs::read_dir(out)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let (name, bytes) = (file.file_name(), file.metadata()?.len());
        let name = name.to_string_lossy();
        println!("{name}: {:.2} MB", bytes as f64 / 1e6);
        ensure!(!name.ends_with(".whl") || bytes <= WHEEL, "{name} is larger than promised");
    }
    Ok(())
}
