//! Sessions that are named by their ids, and one that comes through standard input.
use super::{
    folder::{Done, FINE, Folder, ORPHANED},
    lines::CLAUDE,
};
use std::{
    fs,
    io::Write as _,
    process::{Child, Stdio},
};

const CLAUDES: &str = ".claude/projects/-w/01a06c43-1111-4000-8000-000000000001.jsonl";
const CODEXS: &str = ".codex/sessions/2026/10/01/rollout-2026-10-01T10-00-00-01b06c43-2222.jsonl";
const PIS: &str = ".pi/agent/sessions/--w--/2026-10-01T10-00-00-301Z_01c06c43-3333.jsonl";

#[test]
fn a_session_is_named_by_the_beginning_of_its_id() {
    let home = Folder::new();
    for file in [CLAUDES, CODEXS, PIS] {
        home.write(file, CLAUDE);
    }
    for (id, file) in [
        ("01a06c43", CLAUDES),
        ("01a06c43-1111-4000-8000-000000000001", CLAUDES),
        ("01b06c43-2222", CODEXS),
        ("01c06c43", PIS),
    ] {
        let done = home.at_home(&["check", id]);
        assert_eq!(done.code, 1, "{}{}", done.out, done.err);
        let head = format!("✗ {}  Claude Code · 4 messages", home.path(file).display());
        assert!(done.out.starts_with(&head), "{}", done.out);
    }
    for absent in [
        "1111-4000",
        "2026-10-01",
        "rollout-",
        "01d06c43",
        "6c43-1111",
        "01a06c4",
        "01a06c43.jsonl",
    ] {
        let done = home.at_home(&["check", absent]);
        assert_eq!(done.code, 2, "{absent}: {}", done.out);
        assert!(done.err.contains("cannot be read: No such file"), "{}", done.err);
        let is_id = absent.len() >= 8 && !absent.contains('.');
        let said = done.err.contains("no session on this machine has this id");
        assert_eq!(said, is_id, "{}", done.err);
    }
    let done = home.at_home(&["repair", "--write", "01a06c43"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert_ne!(home.read(CLAUDES), CLAUDE);
    // A file with that name is meant before a session with that id.
    home.write("01a06c43", FINE);
    assert!(home.at_home(&["check", "01a06c43"]).out.starts_with("✓ 01a06c43  Anthropic"));
}

#[test]
fn of_several_sessions_with_an_id_none_is_changed_and_all_are_checked() {
    let home = Folder::new();
    let other = CLAUDES.replace("0001.jsonl", "0002.jsonl");
    for file in [CLAUDES, &other] {
        home.write(file, CLAUDE);
    }
    let done = home.at_home(&["check", "01a06c43"]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.out.contains("\n2 sessions: 2 with findings\n"), "{}", done.out);
    for command in [&["repair", "--write"][..], &["export"], &["reset", "--write"]] {
        let done = home.at_home(&[command, &["01a06c43"]].concat());
        assert_eq!((done.code, &*done.out), (2, ""), "{command:?}");
        assert!(done.err.contains("is the beginning of the ids of 2 sessions"), "{}", done.err);
        for file in [CLAUDES, &other] {
            assert!(done.err.contains(home.path(file).to_str().unwrap()), "{}", done.err);
            assert_eq!(home.read(file), CLAUDE);
        }
    }
}

fn piped(folder: &Folder, arguments: &[&str], bytes: &[u8]) -> Done {
    let mut command = folder.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child: Child = command.env("TMPDIR", folder.path("tmp")).spawn().unwrap();
    // One that refuses it may have ended.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    Done::of(&child.wait_with_output().unwrap())
}

#[test]
fn check_reads_standard_input_and_leaves_nothing_of_it() {
    let folder = Folder::new();
    fs::create_dir(folder.path("tmp")).unwrap();
    for (text, head) in [(ORPHANED, "✗ -  Anthropic Messages"), (CLAUDE, "✗ -  Claude Code")] {
        let done = piped(&folder, &["check", "-"], text.as_bytes());
        assert_eq!(done.code, 1, "{}", done.err);
        assert!(done.out.starts_with(head), "{}", done.out);
        assert!(done.out.ends_with("\nSee how to repair it:  tool-guard session repair FILE\n"));
    }
    assert_eq!(piped(&folder, &["check", "-"], FINE.as_bytes()).code, 0);
    assert_eq!(piped(&folder, &["check", "-"], b"").code, 3);
    let done = piped(&folder, &["check", "-"], b"SQLite format 3\0 and so on");
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(done.err.contains("- is a database"), "{}", done.err);
    assert_eq!(fs::read_dir(folder.path("tmp")).unwrap().count(), 0);
    for command in [&["repair"][..], &["repair", "--write"], &["diff"], &["export"], &["reset"]] {
        let done = piped(&folder, &[command, &["-"]].concat(), ORPHANED.as_bytes());
        assert_eq!((done.code, &*done.out), (2, ""), "{command:?}");
        assert!(done.err.contains("is standard input, which only check reads"), "{}", done.err);
    }
}
