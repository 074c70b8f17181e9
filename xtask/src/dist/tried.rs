//! The packages as people use them: installed without a registry and without Rust, run, and removed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use crate::{peers, repo::Repo, shell};

/// How quickly the program starts.
const START: Duration = Duration::from_millis(15);

/// Installs each package into a fresh place, and uses it.
pub(crate) fn run(repo: &Repo, out: &Path) -> Result<()> {
    let place = tempfile::Builder::new().prefix("tool-guard-dist-").tempdir()?;
    let place = place.path();
    let servers = peers::ensure(repo)?;

    let venv = place.join("venv");
    shell::run(repo.command("python3").args(["-m", "venv"]).arg(&venv))?;
    let before = entries(&venv)?;
    let pip = venv.join("bin/pip");
    let mut install = Command::new(&pip);
    install.args(["install", "--quiet", "--no-index", "--find-links"]).arg(out);
    shell::run(install.arg("tool-reliability"))?;
    use_it(place, &venv.join("bin/tool-guard"), &servers)?;
    demo(place, &venv.join("bin/tool-reliability"))?;
    shell::run(Command::new(&pip).args(["uninstall", "--quiet", "--yes", "tool-reliability"]))?;
    ensure!(entries(&venv)? == before, "`pip uninstall` leaves something in {}", venv.display());

    let prefix = place.join("npm");
    fs::create_dir_all(&prefix)?;
    let tarballs: Vec<PathBuf> = fs::read_dir(out)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "tgz"))
        .collect();
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    npm.args(["--registry", "http://127.0.0.1:1"]).arg("--prefix").arg(&prefix).args(&tarballs);
    shell::run(npm.current_dir(&prefix))?;
    use_it(place, &prefix.join("node_modules/.bin/tool-guard"), &servers)?;
    demo(place, &prefix.join("node_modules/.bin/tool-reliability"))?;
    let mut npm = Command::new("npm");
    npm.args(["uninstall", "--offline", "--no-audit", "--no-fund", "--silent", "--prefix"]);
    let names: Vec<_> = tarballs.iter().filter_map(|path| package(path)).collect();
    shell::run(npm.arg(&prefix).args(&names).current_dir(&prefix))?;
    let left = prefix.join("node_modules");
    let left = if left.exists() { entries(&left)? } else { Vec::new() };
    let left: Vec<_> = left.iter().filter(|it| !it.ends_with(".package-lock.json")).collect();
    ensure!(left.is_empty(), "`npm uninstall` leaves {left:?}");
    Ok(())
}

/// The name of the package in a tarball of ours.
fn package(tarball: &Path) -> Option<String> {
    let name = tarball.file_stem()?.to_str()?;
    let name = &name[..name.rfind('-')?];
    Some(match name.strip_prefix("tool-reliability-") {
        Some(platform) => format!("@tool-reliability/{platform}"),
        None => name.to_owned(),
    })
}

/// Runs the demo, a real server behind the guard, and a check of a session; and measures the start.
fn use_it(place: &Path, program: &Path, servers: &Path) -> Result<()> {
    demo(place, program)?;
    let server = servers.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let lines = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"dist","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"packed"}}}"#,
        "\n",
    );
    let mut guarded = clean(place, program);
    guarded.args(["mcp", "--", "node"]).arg(server).args(["stdio"]);
    let answers = told(&mut guarded, lines)?;
    ensure!(answers.contains("Echo: packed"), "the guarded server answers {answers}");
    let session = place.join("session.json");
    fs::write(&session, r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}]"#)?;
    let checked = clean(place, program).args(["session", "check"]).arg(&session).output()?;
    ensure!(checked.status.code() == Some(1), "`session check` of a broken session: {checked:?}");
    let quickest = (0..20)
        .map(|_| {
            let begun = Instant::now();
            let ended = clean(place, program).arg("--version").stdout(Stdio::null()).status();
            ended.map(|_| begun.elapsed())
        })
        .collect::<Result<Vec<_>, _>>()?;
    let quickest = quickest.into_iter().min().context("nothing was measured")?;
    println!("{}: starts in {quickest:?}", program.display());
    // npm's goes through node.
    let is_bare = !program.components().any(|it| it.as_os_str() == "node_modules");
    ensure!(!is_bare || quickest <= START, "the start takes longer than {START:?}");
    Ok(())
}

fn demo(place: &Path, program: &Path) -> Result<()> {
    let shown = shell::read(clean(place, program).arg("demo"))?;
    ensure!(shown.contains("payment"), "the demo shows {shown}");
    Ok(())
}

/// The program with no Rust on its path, and with files of its own.
fn clean(place: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let without = std::env::split_paths(&path).filter(|folder| !folder.join("cargo").exists());
    command
        .env("PATH", std::env::join_paths(without).unwrap_or_default())
        .env("HOME", place)
        .env("XDG_STATE_HOME", place.join("state"))
        .current_dir(place);
    command
}

/// What a program answers to these lines before its input ends.
fn told(command: &mut Command, lines: &str) -> Result<String> {
    use std::io::Write as _;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("the program does not start")?;
    child.stdin.take().context("it has no input")?.write_all(lines.as_bytes())?;
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
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
    found.sort();
    Ok(found)
}
