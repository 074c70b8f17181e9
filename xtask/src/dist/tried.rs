//! The packages as people use them: installed without a registry and without Rust, run, and removed.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use crate::{peers, repo::Repo, shell};

/// How quickly the program starts.
const START: Duration = Duration::from_millis(15);

/// An address where no registry is.
const NO_REGISTRY: &str = "http://127.0.0.1:1";

/// The plugin for OpenClaw.
const PLUGIN: &str = "@tool-reliability/openclaw";

/// Installs each package into a fresh place, and uses it.
pub(super) fn run(repo: &Repo, tools: &Path, commit: &str, out: &Path) -> Result<()> {
    let servers = peers::ensure(repo)?;
    let everything =
        servers.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let folder = tempfile::Builder::new().prefix("tool-guard-dist-").tempdir()?;
    let home = Home { folder: folder.path(), everything: &everything, commit };
    home.wheel(out)?;
    home.uvx(tools, out)?;
    home.npm(out)?;
    home.plugin(out)?;
    println!("the packages install, run and leave nothing behind");
    Ok(())
}

/// A user's home, who has no Rust.
struct Home<'a> {
    folder: &'a Path,
    everything: &'a Path,
    /// What the packages are built from.
    commit: &'a str,
}

impl Home<'_> {
    fn wheel(&self, out: &Path) -> Result<()> {
        let venv = self.folder.join("venv");
        shell::run(self.command("python3").args(["-m", "venv"]).arg(&venv))?;
        let before = entries(&venv)?;
        let pip = venv.join("bin/pip");
        let mut install = self.command(&pip);
        install.args(["install", "--quiet", "--disable-pip-version-check", "--no-index"]);
        shell::run(install.arg("--find-links").arg(out).arg("tool-reliability"))?;
        let program = venv.join("bin/tool-guard");
        self.uses(&program)?;
        self.demo(self.command(venv.join("bin/tool-reliability")).arg("demo"))?;
        let start = self.start(&program)?;
        println!("tool-guard starts in {:.1} ms", start.as_secs_f64() * 1e3);
        ensure!(start <= START, "the start takes longer than {START:?}");
        shell::run(self.command(&pip).args(["uninstall", "-q", "--yes", "tool-reliability"]))?;
        left(&before, &entries(&venv)?).context("`pip uninstall`")
    }

    fn uvx(&self, tools: &Path, out: &Path) -> Result<()> {
        let mut uvx = self.command(tools.join("uvx"));
        uvx.args(["--offline", "--no-index", "--find-links"]).arg(out);
        self.demo(uvx.args(["--from", "tool-reliability", "tool-guard", "demo"]))
    }

    fn npm(&self, out: &Path) -> Result<()> {
        let prefix = self.folder.join("npm");
        fs::create_dir_all(&prefix)?;
        let tarballs = tarballs(out, fits)?;
        let npm = |action: &str| self.npm_command(action, &prefix);
        shell::run(npm("install").args(&tarballs))?;
        self.uses(&prefix.join("node_modules/.bin/tool-guard"))?;
        let mut npx = self.command("npx");
        npx.args(["--offline", "--no-install", "tool-reliability", "demo"]);
        self.demo(npx.current_dir(&prefix))?;
        let names = tarballs.iter().filter_map(|path| package(path));
        shell::run(npm("uninstall").args(names))?;
        let modules = prefix.join("node_modules");
        let mut after = if modules.exists() { entries(&modules)? } else { Vec::new() };
        after.retain(|path| !path.ends_with(".package-lock.json"));
        left(&[], &after).context("`npm uninstall`")
    }

    /// The plugin brings the program: installed as OpenClaw does it, whose own trial is `cargo lab peers`.
    fn plugin(&self, out: &Path) -> Result<()> {
        let prefix = self.folder.join("plugin");
        fs::create_dir_all(&prefix)?;
        let tarballs = tarballs(out, |path| package(path).is_some_and(|name| name == PLUGIN))?;
        let mut install = self.npm_command("install", &prefix);
        install.args(["--omit=dev", "--omit=peer", "--legacy-peer-deps"]).args(&tarballs);
        shell::run(&mut install)?;
        let (os, cpu) = super::HERE;
        let program = format!("{PLUGIN}/node_modules/@tool-reliability/{os}-{cpu}/bin/tool-guard");
        let program = prefix.join("node_modules").join(program);
        self.demo(self.command(program).arg("demo"))
    }

    /// npm without a registry.
    fn npm_command(&self, action: &str, prefix: &Path) -> Command {
        let mut npm = self.command("npm");
        npm.args([action, "--offline", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--loglevel=error", "--registry", NO_REGISTRY, "--prefix"])
            .arg(prefix)
            .current_dir(prefix);
        npm
    }

    /// Runs the demo, a real server behind the guard, and a check of a session.
    fn uses(&self, program: &Path) -> Result<()> {
        self.demo(self.command(program).arg("demo"))?;
        let version = shell::read(self.command(program).arg("--version"))?;
        let commit = format!("(commit {}, ", self.commit);
        ensure!(version.contains(&commit), "`--version` names another commit: {version}");
        let mut guarded = self.command(program);
        guarded.args(["mcp", "--", "node"]).arg(self.everything).arg("stdio");
        echo(&mut guarded)?;
        let session = self.folder.join("session.json");
        fs::write(&session, ORPHAN)?;
        let checked = self.command(program).args(["session", "check"]).arg(&session).output()?;
        let told = String::from_utf8_lossy(&checked.stdout);
        ensure!(
            checked.status.code() == Some(1) && told.contains("toolu_1"),
            "`session check` of a broken session: {checked:?}"
        );
        Ok(())
    }

    fn demo(&self, demo: &mut Command) -> Result<()> {
        let shown = shell::read(demo)?;
        ensure!(shown.contains("paid once"), "the demo shows {shown}");
        Ok(())
    }

    /// The median of some starts.
    fn start(&self, program: &Path) -> Result<Duration> {
        let mut starts = Vec::new();
        for _ in 0..21 {
            let begun = shell::now();
            let status = self.command(program).arg("--version").stdout(Stdio::null()).status()?;
            starts.push(begun.elapsed());
            ensure!(status.success(), "`tool-guard --version` fails ({status})");
        }
        starts.sort();
        Ok(starts[starts.len() / 2])
    }

    /// A command with no Rust on its path, and a home of its own.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let without = std::env::split_paths(&path).filter(|folder| !folder.join("cargo").exists());
        command
            .env_clear()
            .env("PATH", std::env::join_paths(without).unwrap_or_default())
            .env("HOME", self.folder)
            .current_dir(self.folder);
        command
    }
}

/// A result whose call is missing: a provider refuses it.
const ORPHAN: &str = r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"pay"},{"role":"assistant","content":"I do."},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}]}"#;

/// Lets a server behind the guard repeat a word.
fn echo(guarded: &mut Command) -> Result<()> {
    let mut child = guarded
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("the guard does not start")?;
    let mut stdin = child.stdin.take().context("it has no input")?;
    let mut lines = BufReader::new(child.stdout.take().context("it has no output")?).lines();
    let mut told = |line: &str, awaited: &str| -> Result<()> {
        writeln!(stdin, "{line}")?;
        for answer in &mut lines {
            if answer?.contains(awaited) {
                return Ok(());
            }
        }
        anyhow::bail!("the guarded server ends without {awaited}")
    };
    told(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"dist","version":"1"}}}"#,
        "serverInfo",
    )?;
    told(
        concat!(
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"packed"}}}"#
        ),
        "Echo: packed",
    )?;
    drop(stdin);
    let status = child.wait()?;
    ensure!(status.success(), "the guard ends with {status}");
    Ok(())
}

/// The tarballs of these packages.
fn tarballs(out: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "tgz") && wanted(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether npm installs this tarball here: the main package, or that of this platform.
fn fits(tarball: &Path) -> bool {
    let (os, cpu) = super::HERE;
    let here = format!("{os}-{cpu}");
    package(tarball).is_some_and(|name| !name.starts_with('@') || name.ends_with(&here))
}

/// The name of the package in a tarball of ours, such as `tool-reliability-linux-x64-0.1.0.tgz`.
fn package(tarball: &Path) -> Option<String> {
    let name = tarball.file_stem()?.to_str()?;
    // A version may have a `-` itself.
    let is_version = |at: &usize| name[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let name = &name[..name.match_indices('-').map(|(at, _)| at).find(is_version)?];
    Some(match name.strip_prefix("tool-reliability-") {
        Some(platform) => format!("@tool-reliability/{platform}"),
        None => name.to_owned(),
    })
}

/// Fails if there is something that was not there before.
fn left(before: &[PathBuf], after: &[PathBuf]) -> Result<()> {
    let left: Vec<_> = after.iter().filter(|path| !before.contains(path)).collect();
    ensure!(left.is_empty(), "leaves {left:?} behind");
    Ok(())
}

/// The files of a folder, without what running Python leaves behind.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name == "__pycache__") {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tarball_says_its_package() {
        let name = |file: &str| package(Path::new(file));
        assert_eq!(name("tool-reliability-0.1.0.tgz").as_deref(), Some("tool-reliability"));
        assert_eq!(
            name("/out/tool-reliability-linux-x64-0.1.0.tgz").as_deref(),
            Some("@tool-reliability/linux-x64")
        );
        assert_eq!(name("tool-reliability-0.1.0-rc.1.tgz").as_deref(), Some("tool-reliability"));
    }

    #[test]
    fn what_is_left_is_named() {
        let files = ["old", "new"].map(PathBuf::from);
        left(&files[..1], &files[..1]).unwrap();
        let error = left(&files[..1], &files).unwrap_err().to_string();
        assert_eq!(error, r#"leaves ["new"] behind"#);
    }
}
