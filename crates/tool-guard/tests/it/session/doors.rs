//! Files that another user, or another program, has prepared: nothing of theirs is followed, waited for,
//! believed or written to.
use super::{
    bad_input::{refused, set_mode},
    folder::{Folder, ORPHANED},
};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::Instant;

const CHANGES: [&[&str]; 4] = [
    &["repair", "--write"],
    &["rollback", "--before-fault", "--write"],
    &["reset", "--write"],
    &["checkpoints", "--create"],
];

/// A user that is not this one, if this one may make files of others.
const NOBODY: u32 = 65_534;

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The exit code and the errors of a command that must not wait for anybody.
fn ends(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = folder.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{arguments:?} waits");
        }
        std::hint::spin_loop();
    }
    let done = child.wait_with_output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn a_folder_in_which_others_can_write_is_refused() {
    let folder = Folder::new();
    let file = folder.write("open/a.json", ORPHANED);
    let open = folder.path("open");
    for mode in [0o777, 0o757] {
        set_mode(&open, mode);
        for change in CHANGES {
            let done = folder.session(&[change, &["open/a.json"]].concat());
            assert_eq!(done.code, 2, "{change:?}");
            let what = "✗ open/a.json is in a folder in which other users can exchange files, ";
            assert!(done.err.starts_with(what), "{}", done.err);
            assert!(done.err.contains("the file is as it was") && done.err.contains("chmod go-w"));
        }
    }
    assert_eq!(fs::read_dir(&open).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), ORPHANED);
    // To look is no risk.
    assert_eq!(folder.session(&["check", "open/a.json"]).code, 1);
    // There nobody exchanges what is of others.
    set_mode(&open, 0o1777);
    assert_eq!(folder.session(&["repair", "--write", "open/a.json"]).code, 0);
}

/// Also where this user could write all the same.
#[test]
fn a_folder_of_another_user_is_refused() {
    let folder = Folder::new();
    let file = folder.write("theirs/a.json", ORPHANED);
    let theirs = folder.path("theirs");
    if let Err(error) = chown(&theirs, Some(NOBODY), Some(NOBODY)) {
        // Only root can give it away; what is decided then is tested where it is decided.
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        return;
    }
    for change in CHANGES {
        let done = folder.session(&[change, &["theirs/a.json"]].concat());
        assert_eq!(done.code, 2, "{change:?}");
        assert!(done.err.contains("is in a folder of user 65534, "), "{}", done.err);
        assert!(done.err.contains("→ run this as that user (sudo -u '#65534' …)"), "{}", done.err);
    }
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), ORPHANED);
    // Nor one of theirs that they could exchange.
    chown(&theirs, Some(0), Some(0)).unwrap();
    set_mode(&theirs, 0o1777);
    chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
    let done = folder.session(&["repair", "--write", "theirs/a.json"]);
    assert!(done.err.contains("belongs to user 65534, who can exchange it in"), "{}", done.err);
    // Of a folder of one's own, the new file is theirs again.
    set_mode(&theirs, 0o755);
    assert_eq!(folder.session(&["repair", "--write", "theirs/a.json"]).code, 0);
    let new = fs::metadata(&file).unwrap();
    assert_eq!((new.uid(), new.gid()), (NOBODY, NOBODY));
}

#[test]
fn a_pipe_beside_a_session_is_not_waited_for() {
    let folder = Folder::with("a.json", ORPHANED);
    pipe(&folder.path("a.json.checkpoints"));
    pipe(&folder.path("a.json.lock"));
    for arguments in
        [&["checkpoints"][..], &["checkpoints", "--create"], &["rollback", "--to", "1"]]
    {
        let (code, err) = ends(&folder, &[arguments, &["a.json"]].concat());
        assert_eq!(code, Some(2), "{err}");
        let what = "has checkpoints that cannot be used: a.json.checkpoints: is not a regular file";
        assert!(err.contains(what), "{err}");
    }
    // Nothing can be said in such a lock.
    assert_eq!(ends(&folder, &["repair", "--write", "a.json"]), (Some(0), String::new()));
}

#[test]
fn checkpoints_are_never_those_of_another_file() {
    let folder = Folder::with("a.json", ORPHANED);
    let victim = folder.write("victim", "secret");
    set_mode(&victim, 0o640);
    let sidecar = folder.path("a.json.checkpoints");
    symlink(&victim, &sidecar).unwrap();
    for arguments in [&["checkpoints"][..], &["checkpoints", "--create"]] {
        let done = folder.session(&[arguments, &["a.json"]].concat());
        assert_eq!(done.code, 2);
        assert!(done.err.contains("a.json.checkpoints: is a link"), "{}", done.err);
    }
    fs::remove_file(&sidecar).unwrap();
    fs::hard_link(&victim, &sidecar).unwrap();
    let done = folder.ends(2, &["checkpoints", "--create", "a.json"]);
    assert!(done.err.contains("or has other names"), "{}", done.err);
    assert_eq!((folder.read("victim").as_str(), mode(&victim)), ("secret", 0o640));

    fs::remove_file(&sidecar).unwrap();
    assert_eq!(folder.session(&["checkpoints", "--create", "a.json"]).code, 0);
    assert_eq!(mode(&sidecar), 0o600);
    // One of an earlier version becomes so.
    set_mode(&sidecar, 0o644);
    assert_eq!(folder.session(&["checkpoints", "--create", "a.json"]).code, 0);
    assert_eq!(mode(&sidecar), 0o600);
}

#[test]
fn what_another_program_has_locked_is_not_waited_for() {
    let folder = Folder::with("a.json", ORPHANED);
    assert_eq!(folder.session(&["checkpoints", "--create", "a.json"]).code, 0);
    let sidecar = fs::File::open(folder.path("a.json.checkpoints")).unwrap();
    sidecar.lock().unwrap();
    let (code, err) = ends(&folder, &["checkpoints", "--create", "a.json"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("another program is adding a checkpoint"), "{err}");
    assert!(err.contains("→ run the command again"), "{err}");
}

/// Memory is taken for what is there: such a file has a block of its own, if that.
#[test]
fn a_file_that_claims_to_be_huge_is_refused() {
    let huge = |path: &Path| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(2 << 40).expect("a file system with sparse files: set TMPDIR to one");
    };
    let folder = Folder::new();
    huge(&folder.write("huge.json", "["));
    refused(&folder, "huge.json", "has 2199.0 GB, and no more than 4.3 GB are held in memory");
    huge(&folder.write("huge.jsonl", "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/\"}\n"));
    let done = folder.ends(2, &["check", "huge.jsonl"]);
    assert!(done.err.contains("of data in 2199.0 GB: the rest are holes"), "{}", done.err);
    folder.write("a.json", ORPHANED);
    huge(&folder.write("a.json.checkpoints", ""));
    huge(&folder.write("a.json.lock", "{\"pid\":1}"));
    for arguments in [&["checkpoints"][..], &["checkpoints", "--create"]] {
        let done = folder.session(&[arguments, &["a.json"]].concat());
        assert_eq!(done.code, 2);
        assert!(done.err.contains("a.json.checkpoints: is longer than 16 MiB"), "{}", done.err);
    }
    assert_eq!(folder.session(&["repair", "--write", "a.json"]).code, 0);
}

#[test]
fn hard_links_are_told() {
    let folder = Folder::new();
    let file = folder.write("a.json", ORPHANED);
    fs::hard_link(&file, folder.path("b.json")).unwrap();
    let said = "left with the old content: 1 other name of it (hard links)";
    let planned = folder.session(&["repair", "a.json"]);
    assert!(planned.out.contains(said), "{}", planned.out);
    let (lines, _) = folder.json(&["repair", "a.json"]);
    assert_eq!(lines[0]["otherNames"], 1);
    let done = folder.session(&["repair", "--write", "a.json"]);
    assert!(done.code == 0 && done.out.contains(said), "{}", done.out);
    assert_eq!(folder.read("b.json"), ORPHANED);
    let (lines, _) = folder.json(&["repair", "a.json"]);
    assert!(lines[0].get("otherNames").is_none(), "{}", lines[0]);
}

#[test]
fn the_new_file_runs_as_nobody_else() {
    let folder = Folder::new();
    let file = folder.write("a.json", ORPHANED);
    set_mode(&file, 0o6750);
    assert_eq!(folder.session(&["repair", "--write", "a.json"]).code, 0);
    assert_eq!(mode(&file), 0o750);
}
