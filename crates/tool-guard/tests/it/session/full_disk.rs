//! Where nothing can be written any more, all is as it was. A limit on the size of files stands for
//! a full disk: writes fail in the middle of a file there too.
use super::{
    bad_database::database,
    folder::{FINE, Folder, ORPHANED, guard},
};
use std::{
    fs,
    process::{Command, Stdio},
};

/// Runs the command where files cannot grow past so many of the shell's blocks.
fn limited(folder: &Folder, blocks: usize, arguments: &[&str]) -> (i32, String) {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" session \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(guard()).args(arguments).current_dir(folder.path(""));
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Without memory for a change, the command says so before it reads the file.
#[test]
fn a_file_for_which_there_is_no_memory_is_refused() {
    let folder = Folder::with("a.jsonl", "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/\"}\n");
    let file = fs::File::options().write(true).open(folder.path("a.jsonl")).unwrap();
    file.set_len(3 << 30).unwrap();
    let script = "ulimit -v 8000000; exec \"$0\" session repair a.jsonl";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(guard()).current_dir(folder.path(""));
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("needs 12.9 GB of memory, more than this process gets"), "{err}");
}

/// How many bytes the shell's blocks are: 512 or 1,024 each.
fn limit(folder: &Folder, blocks: usize) -> usize {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; head -c 100000 /dev/zero > probe");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
    let length = fs::metadata(folder.path("probe")).unwrap().len();
    fs::remove_file(folder.path("probe")).unwrap();
    assert!((1..100_000).contains(&length), "the shell does not limit files: {length} bytes");
    usize::try_from(length).unwrap()
}

#[test]
fn what_does_not_fit_leaves_nothing_behind() {
    let folder = Folder::with("a.json", ORPHANED);
    let commands: [&[&str]; 4] = [
        &["checkpoints", "--create", "a.json"],
        &["repair", "--write", "a.json"],
        &["rollback", "--before-fault", "--write", "a.json"],
        &["reset", "--write", "a.json"],
    ];
    for command in commands {
        let (code, err) = limited(&folder, 0, command);
        assert_eq!(code, 2, "{command:?}: {err}");
        assert!(err.contains("cannot write in ") && err.contains("as it was"), "{err}");
        assert_eq!(folder.names(), ["a.json"], "{command:?}");
        assert_eq!(folder.read("a.json"), ORPHANED);
    }
    assert_eq!(folder.session(&["checkpoints", "--create", "a.json"]).code, 0);
}

/// A script must not take what was cut off for all there is; one that stops reading has enough.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_printed_ends_with_2() {
    let folder = Folder::with("a.json", FINE);
    for arguments in [&["check", "a.json"][..], &["check", "--json", "a.json"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = folder.command(arguments);
        let done = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let done = done.wait_with_output().unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{err}");
        assert_eq!(err.matches("✗ cannot print the result: No space left").count(), 1, "{err}");

        let (read, gone) = std::io::pipe().unwrap();
        drop(read);
        let status = folder.command(arguments).stdout(gone).status().unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn half_a_checkpoint_is_taken_back() {
    let folder = Folder::with("a.json", ORPHANED);
    folder.session(&["checkpoints", "--create", "a.json"]);
    // Room for the beginning of a line, and no more.
    let mut kept = folder.read("a.json.checkpoints");
    kept.push_str(&"\n".repeat(limit(&folder, 4) - kept.len() - 20));
    folder.write("a.json.checkpoints", &kept);
    let (code, err) = limited(&folder, 4, &["checkpoints", "--create", "a.json"]);
    assert_eq!(code, 2, "{err}");
    assert_eq!(folder.read("a.json.checkpoints"), kept);
    let (lines, _) = folder.json(&["checkpoints", "--create", "a.json"]);
    assert_eq!(lines[0]["created"], "a#2");
    assert_eq!(lines[0]["unreadableLines"], serde_json::json!([]));
}

#[tokio::test]
async fn a_database_that_cannot_grow_is_as_it_was() {
    let folder = Folder::new();
    let store = database(&folder.path("s.db")).await;
    // Beside one who has it open, and alone.
    for is_open in [true, false] {
        if !is_open {
            store.close().await;
        }
        let (before, code) = folder.json(&["check", "s.db"]);
        assert_eq!((code, &before[0]["status"]), (1, &"findings".into()));
        for command in ["repair", "reset"] {
            // The backup of the messages fits, a page of the database does not.
            let (code, err) = limited(&folder, 2, &[command, "--write", "s.db"]);
            assert_eq!(code, 2, "{command}: {err}");
            let what = "cannot be read or written: the disk failed, or is full";
            assert!(err.contains(what) && err.contains("→ free some space"), "{command}: {err}");
            // Whether a page was written that did not fit is not known: the messages are kept.
            let backup = err.trim_end().rsplit("the messages as they were are in ").next();
            let backup = backup.filter(|_| is_open).map(|path| fs::remove_file(path).unwrap());
            assert_eq!(backup.is_some(), is_open, "{err}");
            let ours = folder.names().into_iter().filter(|name| !name.starts_with("s.db-"));
            assert_eq!(ours.collect::<Vec<_>>(), ["s.db"]);
            assert_eq!(folder.json(&["check", "s.db"]).0, before);
        }
    }
    let (lines, code) = folder.json(&["repair", "--write", "s.db"]);
    assert_eq!((code, &lines[0]["status"]), (0, &"repaired".into()));
}
