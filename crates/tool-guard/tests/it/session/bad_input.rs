//! What cannot be used is named with what to do about it, and stays as it is.
use super::folder::{FINE, Folder, ORPHANED};
use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::{Command, Stdio},
};

/// What is printed of a file that cannot be used, under every command.
pub(crate) fn refused(folder: &Folder, name: &str, what: &str) {
    refused_as(folder, name, &format!("{name} {what}"));
}

const COMMANDS: [&[&str]; 6] = [
    &["check"],
    &["repair", "--write"],
    &["diff"],
    &["checkpoints", "--create"],
    &["rollback", "--before-fault", "--write"],
    &["reset", "--write"],
];

/// The same where what is printed begins otherwise.
pub(crate) fn refused_as(folder: &Folder, name: &str, what: &str) {
    let before = folder.names();
    for command in COMMANDS {
        let done = folder.session(&[command, &[name]].concat());
        assert_eq!((done.code, &*done.out), (2, ""), "{command:?} {name}");
        assert!(done.err.starts_with(&format!("✗ {what}")), "{command:?}: {}", done.err);
        assert!(done.err.contains("\n  → "), "it says what to do: {}", done.err);
        let (lines, code) = folder.json(&[command, &[name]].concat());
        assert_eq!((&lines[0]["status"], code), (&"unreadable".into(), 2));
        assert!(!lines[0]["help"].as_str().unwrap().is_empty());
    }
    assert_eq!(folder.names(), before);
}

/// No command looks for anything in a file that is no session, or changes it.
pub(crate) fn no_session(folder: &Folder, name: &str, why: &str) {
    let before = folder.names();
    let bytes = std::fs::read(folder.path(name)).unwrap();
    for command in COMMANDS {
        let done = folder.session(&[command, &[name]].concat());
        assert_eq!((done.code, &*done.err), (3, ""), "{command:?} {name}");
        let said =
            format!("? {name}\n  not judged: it is no session: {why}\n  → it is left as it is");
        assert!(done.out.starts_with(&said), "{command:?}: {}", done.out);
        let (lines, code) = folder.json(&[command, &[name]].concat());
        assert_eq!((&lines[0]["status"], code), (&"notJudged".into(), 3));
    }
    assert_eq!(folder.names(), before);
    assert!(std::fs::read(folder.path(name)).unwrap() == bytes, "{name}");
}

#[test]
fn files_that_are_no_sessions() {
    let folder = Folder::with("empty.json", "");
    folder.write("blank.json", " \n\n");
    folder.write("binary.json", b"\x7fELF\0\0\0");
    folder.write("text.json", "Dear diary");
    folder.write("app.log", "2026-01-01T00:00:00Z INFO it has begun\n");
    folder.write("other.json", r#"{"name":"x","version":"1.0.0"}"#);
    folder.write("cut.json", &ORPHANED[..200]);
    folder.write("latin.json", b"[{\"role\":\"user\",\"content\":\"caf\xe9\"}]");
    refused(&folder, "none.json", "cannot be read: No such file");
    no_session(&folder, "empty.json", "it is empty");
    no_session(&folder, "blank.json", "it is empty");
    no_session(&folder, "binary.json", "there is no JSON in it");
    no_session(&folder, "text.json", "there is no JSON in it");
    no_session(&folder, "app.log", "there is no JSON in it");
    no_session(&folder, "other.json", "there are no messages in it");
    refused(&folder, "cut.json", "is no whole JSON text: EOF");
    no_session(&folder, "latin.json", "line 1 is not UTF-8");
    refused(&folder, "/dev/null", "is not a regular file");
}

/// A pipe has no path behind its link, and does not end before it is written to.
#[test]
fn what_comes_through_a_pipe_has_to_be_a_file_first() {
    let folder = Folder::new();
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(made.success());
    refused(&folder, "pipe", "is not a regular file");
    let mut command = folder.command(&["check", "/dev/stdin"]);
    let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let done = child.wait_with_output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(err.starts_with("✗ /dev/stdin is not a regular file"), "{err}");
    assert!(err.contains("→ give a session's file, or a folder; write what comes"), "{err}");
}

#[test]
fn folders_without_sessions() {
    let folder = Folder::with("sub/notes.md", "hello");
    let done = folder.ends(2, &["check", "sub"]);
    assert!(done.err.starts_with("✗ sub has no session in it"), "{}", done.err);
    assert_eq!(done.out, "skipped: sub/notes.md (there is no JSON in it)\n");
    fs::create_dir(folder.path("empty")).unwrap();
    assert_eq!(folder.session(&["check", "empty"]).code, 2);
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let folder = Folder::with("a.json", FINE);
    let wrong: [&[&str]; 6] = [
        &[],
        &["check"],
        &["mend", "a.json"],
        &["rollback", "a.json"],
        &["rollback", "--to", "1", "--before-fault", "a.json"],
        &["checkpoints", "--note", "x", "a.json"],
    ];
    for arguments in wrong {
        assert_eq!(folder.session(arguments).code, 2, "{arguments:?}");
    }
}

/// The command as a user who may not do everything; as root it is `nobody`.
pub(crate) fn unprivileged(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    // The build's folder may be closed to others. Not by this process, whose other threads start
    // children that would have the copy open, too: what is being written cannot be run.
    let guard = folder.path("guard");
    let copied =
        Command::new("cp").arg(crate::session::folder::guard()).arg(&guard).status().unwrap();
    assert!(copied.success());
    set_mode(&guard, 0o755);
    let mut command = Command::new(&guard);
    command.arg("session").args(arguments).current_dir(folder.path(""));
    if is_root(folder) {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn is_root(folder: &Folder) -> bool {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata(folder.path("")).unwrap()) == 0
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_may_not_be_read_or_written_is_named() {
    let folder = Folder::new();
    set_mode(&folder.path(""), 0o755);
    let secret = folder.write("secret.json", ORPHANED);
    set_mode(&secret, 0o000);
    let (code, err) = unprivileged(&folder, &["check", "secret.json"]);
    assert_eq!(code, 2);
    assert!(err.starts_with("✗ secret.json cannot be read: Permission denied"), "{err}");
    assert!(err.contains("→ run as the user that owns it: ls -l secret.json"), "{err}");

    folder.write("closed/a.json", ORPHANED);
    set_mode(&folder.path("closed"), 0o555);
    let (code, err) = unprivileged(&folder, &["repair", "--write", "closed/a.json"]);
    set_mode(&folder.path("closed"), 0o755);
    assert_eq!(code, 2);
    assert!(err.contains("cannot write in ") && err.contains("the file is as it was"), "{err}");
    assert!(err.contains("→ no user may write in "), "{err}");
    assert_eq!(folder.read("closed/a.json"), ORPHANED);
    assert_eq!(fs::read_dir(folder.path("closed")).unwrap().count(), 1);
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let folder = Folder::with("a.json", FINE);
    let done = folder.ends(2, &["check", "none.json", "a.json"]);
    assert!(done.out.contains("✓ a.json") && done.err.contains("✗ none.json"));
}
