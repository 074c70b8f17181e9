//! Sessions that a running agent has open: they are read, and not written.
use super::{folder::Folder, lines::CLAUDE};
use serde_json::{Value, json};
use std::{
    fs,
    process::{Command, id},
};

const ID: &str = "1cdd6b30-125c-4a5a-b114-ebb0600f685c";

const CHANGES: [&[&str]; 3] =
    [&["repair", "--write"], &["rollback", "--before-fault", "--write"], &["reset", "--write"]];

/// The session of this id in Claude Code's folder, and in that of its process `own`.
fn claude_code(own: &Value) -> (Folder, String) {
    let folder = Folder::new();
    let file = format!("config/projects/-w/{ID}.jsonl");
    folder.write(&file, CLAUDE);
    folder.write("config/sessions/1.json", own.to_string());
    (folder, file)
}

/// What Claude Code writes of a process.
fn process(pid: u32, start: &str, session: &str) -> Value {
    json!({
        "pid": pid, "sessionId": session, "cwd": "/w", "startedAt": 1_795_890_526_100_u64,
        "procStart": start, "version": "2.1.332", "kind": "interactive", "entrypoint": "cli",
    })
}

/// When this process started, if the system says it.
fn start() -> Option<String> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').nth(19)?.to_owned())
}

#[track_caller]
fn is_refused(folder: &Folder, file: &str, said: &str) {
    let before = folder.read(file);
    for change in CHANGES {
        let done = folder.session(&[change, &[file]].concat());
        assert_eq!((done.code, &*done.out), (2, ""), "{change:?}");
        assert!(done.err.contains(&format!("(process {}) {said}", id())), "{}", done.err);
        assert!(done.err.contains("→ stop the agent first"), "{}", done.err);
    }
    assert_eq!(folder.read(file), before);
    // To look is no risk.
    for command in [&["check"][..], &["repair"], &["diff"], &["reset"]] {
        assert_eq!(folder.session(&[command, &[file]].concat()).code, 1, "{command:?}");
    }
}

#[test]
fn a_session_of_a_running_claude_code_is_not_written() {
    let (folder, file) = claude_code(&process(id(), &start().unwrap_or_default(), ID));
    is_refused(&folder, &file, "has this session open; the file is as it was");
    // Its subagents' files, and the same under another path.
    let subagents = format!("config/projects/-w/{ID}/subagents/agent-a1.jsonl");
    folder.write(&subagents, CLAUDE);
    is_refused(&folder, &subagents, "has this session open");
    fs::create_dir(folder.path("disk")).unwrap();
    fs::rename(folder.path("config/projects"), folder.path("disk/p")).unwrap();
    std::os::unix::fs::symlink(folder.path("disk/p"), folder.path("config/projects")).unwrap();
    is_refused(&folder, &file, "has this session open");
    // A copy is nobody's.
    folder.write(&format!("{ID}.jsonl"), CLAUDE);
    folder.ends(0, &["repair", "--write", &format!("{ID}.jsonl")]);
}

#[test]
fn a_session_of_a_claude_code_that_was_killed_is_written() {
    let mut killed = Command::new("true").spawn().unwrap();
    killed.wait().unwrap();
    let (own, start) = (id(), start());
    let dead = process(killed.id(), "5057752", ID);
    let another = process(own, start.as_deref().unwrap_or_default(), "27cceddd");
    let later = process(own, "1", ID);
    // Without /proc nobody can tell a later process with the same number.
    let later = start.is_some().then_some(later);
    for told in [dead, another, json!({"pid": own}), json!("no object")].into_iter().chain(later) {
        let (folder, file) = claude_code(&told);
        let done = folder.session(&["repair", "--write", &file]);
        assert_eq!(done.code, 0, "{told}: {}", done.err);
    }
}

#[test]
fn a_rollout_that_codex_has_open_is_not_written() {
    let file = format!("sessions/2026/10/01/rollout-2026-10-01T10-00-00-{ID}.jsonl");
    let folder = Folder::with(&file, CLAUDE);
    let open = fs::File::options().read(true).append(true).open(folder.path(&file)).unwrap();
    if start().is_some() {
        is_refused(&folder, &file, "has it open for writing; the file is as it was");
    }
    drop(open);
    folder.ends(0, &["repair", "--write", &file]);
}
