//! The socket, for hosts that are one process for each event.
use super::host::{Folder, STRONG, is_described, pay};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::Shutdown,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::{UnixListener, UnixStream},
    },
    path::Path,
    process::Child,
    thread,
    time::Duration,
};
use tokio::time::Instant;

/// A guard that serves a socket.
struct Guard(Child);

impl Guard {
    fn start(folder: &Folder) -> Self {
        let socket = folder.path("run/guard.sock");
        Self(folder.guard(&["--socket", socket.to_str().unwrap()]).spawn().unwrap())
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A connection, once the guard listens.
fn connect(socket: &Path) -> UnixStream {
    let by = Instant::now() + Duration::from_secs(20);
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < by, "{error}"),
        }
        thread::yield_now();
    }
}

/// One event, as a process of its own would send it.
fn once(socket: &Path, event: &Value) -> Value {
    let mut stream = connect(socket);
    stream.write_all(format!("{event}\n").as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    is_described(&line)
}

fn end(id: &str) -> Value {
    json!({ "event": "after", "id": id, "session": "s", "call": STRONG, "output": "paid" })
}

#[test]
fn each_event_of_a_call_may_come_from_a_process_of_its_own() {
    let folder = Folder::new();
    let _guard = Guard::start(&folder);
    let socket = folder.path("run/guard.sock");
    assert_eq!(once(&socket, &pay(1, STRONG))["decision"], "allow");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(&folder.path("run"))), (0o600, 0o700));
    assert_eq!(once(&socket, &end("e"))["decision"], "none");
    assert_eq!(once(&socket, &pay(1, STRONG))["code"], "replayed");
}

#[test]
fn one_guard_serves_a_socket_and_the_next_takes_over_from_one_that_was_killed() {
    let folder = Folder::new();
    let first = Guard::start(&folder);
    let socket = folder.path("run/guard.sock");
    assert_eq!(once(&socket, &pay(1, STRONG))["decision"], "allow");
    // A second one ends at once, and says nothing is wrong.
    let mut second = Guard::start(&folder);
    assert_eq!(second.0.wait().unwrap().code(), Some(0));
    first.kill();
    let _third = Guard::start(&folder);
    // The end of a call that the killed guard allowed is not guessed.
    assert!(once(&socket, &end("e"))["error"].as_str().unwrap().contains("no such call"));
    assert_eq!(once(&socket, &pay(1, STRONG))["code"], "outcome_unknown");
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let folder = Folder::new();
    let file = folder.file("guard.sock", "mine");
    let (code, said) =
        crate::decide::host::Host::refused(&folder, &["--socket", file.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(said.contains("no socket"), "{said}");
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
}

/// Who can make files in the folder could listen there, or replace the lock.
#[test]
fn where_others_can_make_files_is_no_socket() {
    let folder = Folder::new();
    let socket = folder.path("guard.sock");
    let args = ["--socket", socket.to_str().unwrap()];
    let refused = || crate::decide::host::Host::refused(&folder, &args);
    for mode in [0o777, 0o1777] {
        fs::set_permissions(folder.path(""), fs::Permissions::from_mode(mode)).unwrap();
        let (code, said) = refused();
        assert!(code == 1 && said.contains("give a path in a folder of your own"), "{said}");
    }
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o700)).unwrap();
    let lock = folder.path("guard.sock.lock");
    symlink(folder.file("victim", "mine"), &lock).unwrap();
    let (code, said) = refused();
    assert!(code == 1 && said.contains("is a link"), "{said}");
    fs::remove_file(&lock).unwrap();
    mkfifoat(CWD, &lock, Mode::RUSR | Mode::WUSR).unwrap();
    let (code, said) = refused();
    assert!(code == 1 && said.contains("is not a regular file"), "{said}");
    fs::remove_file(&lock).unwrap();
    // Another program's, which goes on.
    let other = UnixListener::bind(&socket).unwrap();
    let (code, said) = refused();
    assert!(code == 1 && said.contains("another program listens there"), "{said}");
    drop(other.accept().unwrap());
    UnixStream::connect(&socket).unwrap();
}

#[test]
fn a_guard_that_nobody_needs_ends() {
    let folder = Folder::new();
    let socket = folder.path("guard.sock");
    let args = ["--socket", socket.to_str().unwrap(), "--idle", "300ms"];
    let mut guard = Guard(folder.guard(&args).spawn().unwrap());
    assert_eq!(guard.0.wait().unwrap().code(), Some(0));
    let log = folder.path("records.db-wal");
    assert!(folder.path("records.db").exists() && !log.exists(), "it is closed");
}
