//! The server process, under its supervisor.
use bytes::Buf;
use rustix::process::{Pid, Signal, kill_process};
use std::{env, ffi::OsString, io, process::Stdio, time::Duration};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// How long the output of a server that has ended may be silent before it counts as closed, too: a process
/// that the server left behind may hold it open.
pub(crate) const LINGER: Duration = Duration::from_millis(200);
/// Longer than the supervisor needs to end its group.
pub(crate) const GRACE: Duration = Duration::from_secs(4);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The supervisor, which ends with the server.
    pub(crate) supervisor: Child,
    /// `None` after it was closed.
    pub(crate) input: Option<ChildStdin>,
}

/// Writes some of `lines`.
pub(crate) async fn write(
    input: &mut Option<ChildStdin>,
    lines: &mut impl Buf,
) -> io::Result<usize> {
    let input = input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    input.write_buf(lines).await
}

/// Waits for the server's end, without a limit; returns its exit code, if there is one.
pub(crate) async fn exit(supervisor: &mut Child) -> Option<u8> {
    let status = supervisor.wait().await.ok()?;
    Some(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

impl Server {
    /// Starts `command`. Call this from the main thread: the supervisor ends with the thread that
    /// started it.
    pub(crate) fn start(command: &[OsString]) -> io::Result<Self> {
        Self::start_with(command, |_| {})
    }

    /// The same, with what `prepare` adds: variables, a folder, another standard error.
    pub(crate) fn start_with(
        command: &[OsString],
        prepare: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut supervisor = Command::new(env::current_exe()?);
        supervisor
            .arg("__exec")
            .arg(std::process::id().to_string())
            .arg("--")
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        prepare(&mut supervisor);
        let mut supervisor = supervisor.spawn()?;
        let input = supervisor.stdin.take();
        Ok(Self { supervisor, input })
    }

    /// Its output, which can be taken once.
    pub(crate) fn take_output(&mut self) -> ChildStdout {
        self.supervisor.stdout.take().expect("piped, and taken once")
    }

    /// Closes its input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Asks it to end, without waiting for that.
    pub(crate) fn terminate(&self) {
        let id = self.supervisor.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            let _ = kill_process(id, Signal::TERM);
        }
    }

    /// Waits for its end for a limited time; returns the exit code, if it ended.
    pub(crate) async fn wait(&mut self) -> Option<u8> {
        timeout(GRACE, exit(&mut self.supervisor)).await.ok()?
    }

    /// Ends it, with all processes of its group.
    pub(crate) async fn end(&mut self) {
        self.close_input();
        self.terminate();
        if self.wait().await.is_none() {
            let _ = self.supervisor.kill().await;
        }
    }
}
