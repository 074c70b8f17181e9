//! Runs a command in a process group of its own, and ends the whole group when the guard ends.
//!
//! A killed guard cannot clean up, so a supervisor between it and the server does: the kernel sends it
//! a signal when its parent dies. The supervisor can be killed, too; a third process waits for that,
//! and then ends the group.
use crate::signals::Signals;
use rustix::process::{Pid, Signal, getppid, kill_process_group, test_kill_process_group};
use std::{
    env,
    ffi::OsString,
    fs::OpenOptions,
    io,
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};
use tr_core::printable;

/// How long a group may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Exit codes of a command that was not found, or could not be started, as shells use them.
pub(crate) const NOT_FOUND: u8 = 127;
pub(crate) const NOT_STARTED: u8 = 126;

/// Runs `command` until it ends, or until the process `parent` does.
pub(crate) async fn run(parent: i32, command: &[OsString]) -> io::Result<ExitCode> {
    let ended = Signals::new()?.end(None::<fn()>);
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    let orphaned = async {
        // Where the kernel sends a signal, this only catches a parent that died before we asked for it.
        let beat = if cfg!(target_os = "linux") { Duration::from_secs(60) } else { GRACE / 4 };
        while getppid().map(Pid::as_raw_nonzero).map(i32::from) == Some(parent) {
            sleep(beat).await;
        }
    };
    let (program, args) = command.split_first().expect("clap asks for a command");
    let mut child = match Command::new(program).args(args).process_group(0).spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = program.to_string_lossy();
            let found = error.kind() != io::ErrorKind::NotFound;
            let advice = match (found, program.contains(' '), program.contains('/')) {
                (false, true, _) => ": write the command and its arguments as separate words",
                (false, _, false) => {
                    ": install it, or give its full path, since a client may have another PATH than your shell"
                }
                _ => "",
            };
            eprintln!("tool-guard: cannot start {}: {error}{advice}", printable(&program));
            return Ok(ExitCode::from(if found { NOT_STARTED } else { NOT_FOUND }));
        }
    };
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let _watched = match group.map(watched).transpose() {
        Ok(watched) => watched,
        Err(error) => {
            end(&mut child).await?;
            return Err(error);
        }
    };
    release_stdio()?;
    tokio::select! {
        status = child.wait() => {
            let status = status?;
            if let Some(group) = group {
                end_rest(group).await;
            }
            Ok(exit_code(status))
        }
        () = orphaned => end(&mut child).await,
        _ = ended => end(&mut child).await,
    }
}

/// Starts the third process, which ends the group when its input, our end of a pipe, closes.
fn watched(group: Pid) -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .args(["__watch", &group.as_raw_nonzero().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Ends the group once standard input ends.
pub(crate) async fn watch(group: i32) -> io::Result<ExitCode> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    if let Some(group) = Pid::from_raw(group) {
        end_rest(group).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Closes our copies of the server's input and output, so that they close when the server ends.
fn release_stdio() -> io::Result<()> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}

/// Ends the processes that the server left in its group.
async fn end_rest(group: Pid) {
    if kill_process_group(group, Signal::TERM).is_err() {
        return; // The group is empty.
    }
    let gone = async {
        while test_kill_process_group(group).is_ok() {
            sleep(GRACE / 100).await;
        }
    };
    if timeout(GRACE, gone).await.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

async fn end(child: &mut Child) -> io::Result<ExitCode> {
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let Some(group) = group else { return Ok(ExitCode::SUCCESS) };
    let _ = kill_process_group(group, Signal::TERM);
    let status = timeout(GRACE, child.wait()).await;
    // Other processes of the group may outlive its leader.
    let _ = kill_process_group(group, Signal::KILL);
    let status = match status {
        Ok(status) => status?,
        Err(_) => child.wait().await?,
    };
    Ok(exit_code(status))
}

/// A signal counts as 128 plus its number, as in shells.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
