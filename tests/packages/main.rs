//! The scripts that start the program of an installed package: npm's, in node, and the wheels', in Python.
#![cfg(unix)]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// An installed package whose program is this shell script.
struct Installed {
    folder: TempDir,
    interpreter: &'static str,
    script: &'static str,
}

/// The main package and that of this platform, as npm lays them out.
fn npm(program: Option<&str>) -> Installed {
    let folder = tempfile::tempdir().unwrap();
    let modules = folder.path().join("node_modules");
    let script = "node_modules/tool-reliability/tool-guard.cjs";
    copy("packaging/npm/tool-guard.cjs", &folder.path().join(script));
    if let Some(program) = program {
        let asked = ["-p", "`${process.platform}-${process.arch}`"];
        let platform = Command::new("node").args(asked).output().unwrap().stdout;
        let platform = String::from_utf8(platform).unwrap();
        let package = modules.join("@tool-reliability").join(platform.trim());
        write(&package.join("bin/tool-guard"), program);
    }
    Installed { folder, interpreter: "node", script }
}

/// The folder of scripts of a virtual environment.
fn wheel(program: Option<&str>) -> Installed {
    let folder = tempfile::tempdir().unwrap();
    let script = "bin/tool-reliability";
    copy("packaging/python/data/scripts/tool-reliability", &folder.path().join(script));
    if let Some(program) = program {
        write(&folder.path().join("bin/tool-guard"), program);
    }
    Installed { folder, interpreter: "python3", script }
}

fn both(program: &str) -> [Installed; 2] {
    [npm(Some(program)), wheel(Some(program))]
}

impl Installed {
    fn path(&self) -> PathBuf {
        self.folder.path().join(self.script)
    }

    /// Who runs the tests may ignore signals (`nohup`), which programs inherit.
    fn command(&self) -> Command {
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,TERM").arg(self.interpreter).arg(self.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }
}

#[test]
fn arguments_input_output_and_exit_code_are_the_program_s() {
    for installed in both("for word; do echo \"<$word>\"; done; cat; echo trouble >&2; exit 7") {
        let mut child = installed
            .command()
            .args(["mcp", "--", "a b", "$HOME", ""])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"{\"id\":1}\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(stdout, "<mcp>\n<-->\n<a b>\n<$HOME>\n<>\n{\"id\":1}\n", "{}", installed.script);
        assert_eq!(output.stderr, b"trouble\n");
        assert_eq!(output.status.code(), Some(7));
    }
}

#[test]
fn npm_says_in_one_line_that_the_platform_s_package_is_missing() {
    let output = npm(None).run(&["demo"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(told.starts_with("tool-reliability: the package @tool-reliability/"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn the_wheel_s_script_says_in_one_line_that_the_program_is_missing() {
    let output = wheel(None).run(&["demo"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(126));
    assert!(told.contains("tool-guard: No such file or directory; install"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn the_scripts_work_where_they_are_linked_to() {
    for installed in both("echo linked") {
        let link = installed.folder.path().join("link");
        symlink(installed.path(), &link).unwrap();
        let output = Command::new(installed.interpreter).arg(link).output().unwrap();
        assert_eq!(output.stdout, b"linked\n", "{output:?}");
    }
}

#[test]
fn signals_end_the_program_and_what_started_it() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        for installed in both("echo $$; exec cat") {
            let mut started =
                installed.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut stdout = BufReader::new(started.stdout.take().unwrap());
            let mut program = String::new();
            stdout.read_line(&mut program).unwrap();
            let program = Pid::from_raw(program.trim().parse().unwrap()).unwrap();
            kill_process(Pid::from_child(&started), signal).unwrap();
            // What ends is ended by the signal, not by the end of its input.
            let _open = started.stdin.take();
            let status = started.wait().unwrap();
            assert!(!status.success(), "{}: {status}", installed.script);
            let left = kill_process(program, Signal::KILL);
            assert!(left.is_err(), "{} leaves the program running", installed.script);
        }
    }
}

#[test]
fn a_program_that_a_signal_ended_gives_the_exit_code_that_shells_give() {
    let output = npm(Some("kill -9 $$")).run(&[]);
    assert_eq!(output.status.code(), Some(128 + 9));
}

#[test]
fn the_wheel_s_script_can_be_run() {
    let script = root().join("packaging/python/data/scripts/tool-reliability");
    // Installers keep the mode; they put their Python into the first line.
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o111, 0o111);
    assert!(fs::read_to_string(script).unwrap().starts_with("#!python\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn copy(from: &str, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(root().join(from), to).unwrap();
}

fn write(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
