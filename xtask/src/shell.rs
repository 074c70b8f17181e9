//! Running other programs: each is shown before it starts, and its failure names it.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, ExitStatus, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};

/// Runs a program that speaks to the user itself.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("`{shown}` does not start"))?;
    judge(status, &shown)
}

/// Runs a program and returns what it wrote to its standard output.
pub fn read(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{shown}` does not start"))?;
    judge(output.status, &shown)?;
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` wrote no UTF-8"))
}

/// Runs a program, passes its standard output on and shows `each` line of it to the caller.
pub fn watch(command: &mut Command, mut each: impl FnMut(&str)) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{shown}` does not start"))?;
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            print!("{text}");
            each(text.trim_end());
            line.clear();
        }
    }
    judge(child.wait()?, &shown)
}

/// Whether a program starts and ends well, unseen.
pub fn works(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn judge(status: ExitStatus, shown: &str) -> Result<()> {
    ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

/// The command as one would type it, with the program's folder left out.
fn show(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let mut shown =
        program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for arg in command.get_args() {
        shown.push(' ');
        shown.push_str(&arg.to_string_lossy());
    }
    shown
}

/// The time, for showing how long something took.
#[expect(
    clippy::disallowed_methods,
    reason = "real time is what is shown, and nothing here runs under tokio"
)]
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command() {
        let error = run(Command::new("/bin/sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert_eq!(error, "`sh -c exit 3` failed (exit status: 3)");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = read(&mut Command::new("/nowhere/tool")).unwrap_err().to_string();
        assert_eq!(error, "`tool` does not start");
        assert!(!works("/nowhere/tool", &[]));
    }

    #[test]
    fn lines_are_seen_up_to_a_last_one_without_an_end() {
        let mut seen = Vec::new();
        watch(Command::new("/bin/sh").args(["-c", "printf 'one\\ntwo'"]), |line| {
            seen.push(line.to_owned());
        })
        .unwrap();
        assert_eq!(seen, ["one", "two"]);
    }
}
