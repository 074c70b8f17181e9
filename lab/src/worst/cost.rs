//! Runs one case, and has Python and `time` say what it cost.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use super::Input;

/// What a process took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    /// Of the CPU, in the program and in the system.
    pub(super) seconds: f64,
    /// The most that it held.
    pub(super) megabytes: f64,
}

impl Cost {
    /// Times what plain input took.
    pub(super) fn times(self, plain: Self) -> (f64, f64) {
        (self.seconds / plain.seconds, self.megabytes / plain.megabytes)
    }

    pub(super) const fn least(self, other: Self) -> Self {
        Self {
            seconds: self.seconds.min(other.seconds),
            megabytes: self.megabytes.min(other.megabytes),
        }
    }
}

pub(super) fn of(guard: &Path, work: &Path, action: &str, input: &Input) -> Result<Cost> {
    let mut command = measured(work);
    command.arg(guard);
    match input {
        Input::File(name, bytes) => session(command, work, action, name, bytes)?,
        Input::Answer(asked, bytes) => answered(command, work, asked.as_bytes(), bytes)?,
        Input::Sent(bytes) => answered(command, work, bytes, ANSWER)?,
    }
    told(work)
}

/// What Python's json takes to read the same text, line by line: small parts cost it more, too.
pub(super) fn of_parsing(work: &Path, input: &Input) -> Result<Cost> {
    let (Input::File(_, bytes) | Input::Answer(_, bytes) | Input::Sent(bytes)) = input;
    let path = work.join("parsed");
    fs::write(&path, bytes)?;
    let status = measured(work).args(["python3", "-c", PARSER]).arg(&path).status()?;
    fs::remove_file(path)?;
    ensure!(status.success(), "{status}");
    told(work)
}

/// A command whose arguments are run, and what that took is written down.
fn measured(work: &Path) -> Command {
    let (time, memory) = (work.join("time"), work.join("memory"));
    for file in [&time, &memory] {
        let _ = fs::remove_file(file);
    }
    let mut command = Command::new("python3");
    command.args(["-c", TIMER]).arg(&time);
    command.args(["time", "--format", "%M", "--output"]).arg(&memory);
    command
}

fn told(work: &Path) -> Result<Cost> {
    let memory = number(&work.join("memory"))? * 1.024e-3;
    Ok(Cost { seconds: number(&work.join("time"))?, megabytes: memory })
}

/// Runs a command, and writes the seconds that it took of the CPU into a file. `time` counts in
/// hundredths of a second, and ordinary input takes one or two of them.
const TIMER: &str = r#"
import os, sys
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
with open(sys.argv[1], "w") as told:
    told.write(f"{used.ru_utime + used.ru_stime:.6f}")
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"#;

/// Reads each line of a file as JSON, and goes on where it is none.
const PARSER: &str = r#"
import json, sys
with open(sys.argv[1], "rb") as file:
    for line in file:
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            pass
"#;

/// What is answered to a line that is itself the case.
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

fn session(
    mut command: Command,
    work: &Path,
    action: &str,
    name: &str,
    bytes: &[u8],
) -> Result<()> {
    let path = work.join(name);
    fs::write(&path, bytes)?;
    let out = fs::File::create(work.join("told"))?;
    let status = command
        .args(["session", action])
        .arg(&path)
        .stdout(out)
        .stderr(Stdio::null())
        .status()
        .context("Python does not start")?;
    fs::remove_file(path)?;
    ensure!(status.code().is_some_and(|code| code < 4), "{status}");
    Ok(())
}

/// Sends a line, and waits for what the server answers to it.
fn answered(mut command: Command, work: &Path, line: &[u8], answer: &[u8]) -> Result<()> {
    let file = work.join("answer");
    fs::write(&file, [answer, b"\n"].concat())?;
    let script = format!("head -n 1 >/dev/null; cat '{}'; cat >/dev/null", file.display());
    let mut child = command
        .args(["mcp", "--log", "off", "--records", "memory", "--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("Python does not start")?;
    let mut input = child.stdin.take().context("it has an input")?;
    let mut output = BufReader::with_capacity(1 << 20, child.stdout.take().context("an output")?);
    input.write_all(&[line, b"\n"].concat())?;
    let mut told = Vec::new();
    while !is_last(&told) {
        told.clear();
        ensure!(output.read_until(b'\n', &mut told)? > 0, "it ended without an answer");
    }
    drop(told);
    drop(input);
    io::copy(&mut output, &mut io::sink())?;
    let status = child.wait()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// Every case's last line has the request's id at one of its ends.
fn is_last(line: &[u8]) -> bool {
    let ends = [&line[..line.len().min(60)], &line[line.len().saturating_sub(60)..]];
    ends.iter().any(|end| contains(end, br#""id":1,"#) || contains(end, br#""id":1}"#))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The number in the last line of a file.
fn number(file: &Path) -> Result<f64> {
    let told = fs::read_to_string(file)?;
    let last = told.lines().last().and_then(|last| last.parse().ok());
    last.with_context(|| format!("{} has no number", file.display()))
}
