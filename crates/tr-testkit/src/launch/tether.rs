//! A foreign program that does not outlive us, however we end.

use std::{
    ffi::OsStr,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

/// Starts the program in the shell's own place, once somebody watches over it: who gets a line goes, who finds the
/// pipe closed (its other end died with us) kills the program first.
///
/// The kernel's parent-death signal would do without the watcher, but is sent when the *thread* that started the
/// program ends, and tests are threads.
const WATCHED: &str = r#"exec 3<&0
(read -r _ <&3 || kill -9 $$) </dev/null >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null 2>&1"#;

/// Who runs a program, where it must not be us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// A running program; killed when dropped, and by its watcher when this process dies in whatever way.
#[derive(Debug)]
pub(crate) struct Tethered {
    child: Child,
}

impl Tethered {
    /// Starts a program in a process group of its own, so that an interrupt from the terminal ends us first. What
    /// it writes, errors too, comes as lines until it ends; nobody has to read them.
    pub(crate) fn start(
        program: &OsStr,
        args: &[String],
        user: Option<User>,
    ) -> io::Result<(Self, Receiver<String>)> {
        let mut command = Command::new("/bin/sh");
        if let Some(User { user, group }) = user {
            // Where it may be: the folder that we stand in may be closed to it.
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
            // Read on when nobody listens: a full pipe would stop the program.
            read.for_each(|text| drop(line.send(text)));
        });
        Ok((Self { child }, lines))
    }

    /// The program's process: the shell that became it.
    #[cfg(feature = "redis")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it (`SIGKILL`) and waits for its end.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        // The watcher goes before the number of the process is free for another one.
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
