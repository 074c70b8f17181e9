//! A child program that ends with this process, however this process ends.

use std::{
    ffi::OsStr,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

/// Starts a watcher, then replaces the shell by the program. The watcher exits when it reads a
/// line; if the pipe is closed, because this process died, it kills the program first.
///
/// The kernel's parent-death signal would need no watcher, but it is sent when the *thread* that
/// started the program ends, and tests are threads.
const WATCHED: &str = r#"exec 3<&0
(read -r _ <&3 || kill -9 $$) </dev/null >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null 2>&1"#;

/// The user that runs a program instead of the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// A running program; killed on drop, and by its watcher when this process dies in any way.
#[derive(Debug)]
pub(crate) struct Tethered {
    child: Child,
}

impl Tethered {
    /// Starts a program in its own process group, so that an interrupt from the terminal ends this
    /// process first. Its output and errors arrive as lines until it ends; reading them is
    /// optional.
    pub(crate) fn start(
        program: &OsStr,
        args: &[String],
        user: Option<User>,
    ) -> io::Result<(Self, Receiver<String>)> {
        let mut command = Command::new("/bin/sh");
        if let Some(User { user, group }) = user {
            // A folder that the user may enter, unlike perhaps the current one.
            command.uid(user).gid(group).current_dir("/");
        }
        let mut child = command
            .args(["-c", WATCHED, "watched"])
            .arg(program)
            .args(args)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().expect("it is piped");
        let (line, lines) = channel();
        thread::spawn(move || {
            let read = BufReader::new(stdout).lines().map_while(Result::ok);
            // Reads on without a receiver, since a full pipe would block the program.
            read.for_each(|text| drop(line.send(text)));
        });
        Ok((Self { child }, lines))
    }

    /// The process id: the shell's, which the program replaced.
    #[cfg(feature = "redis")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it (`SIGKILL`) and waits for its end.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        // The watcher exits before the process id can be reused.
        if let Some(mut watcher) = self.child.stdin.take() {
            let _ = watcher.write_all(b"\n");
        }
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Tethered {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
