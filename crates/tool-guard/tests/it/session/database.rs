//! Durable sessions in a SQLite database, as an agent's process writes them.
use super::folder::Folder;
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use tr_core::CycleRef;
use tr_integrity::{Operation, Sessions, sqlite::Sqlite};
use tr_transcript::Format;

const FORMAT: Format = Format::AnthropicMessages;

const HELLO: &str = r#"{"role":"user","content":"Pay order 42."}"#;
const PAYS: &str = r#"{"role":"assistant","content":"I pay it."}"#;
const ORPHAN: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A","content":"receipt ch_1"}]}"#;
const DONE: &str = r#"{"role":"assistant","content":"Done."}"#;

/// A process that has the database open.
pub(crate) struct Agent {
    store: Sqlite,
    sessions: Sessions,
}

impl Agent {
    pub(crate) async fn on(path: &Path) -> Self {
        let store = Sqlite::open(path).await.unwrap();
        let sessions = Sessions::builder(FORMAT).store(store.clone()).build().unwrap();
        Self { store, sessions }
    }

    async fn says(&self, id: &str, messages: &[&str]) {
        for raw in messages {
            let message = FORMAT.read(*raw).unwrap();
            self.sessions.change(id, |session, _| session.push(message)).await.unwrap();
        }
    }

    pub(crate) async fn checkpoint(&self, id: &str) -> String {
        let make = self.sessions.change(id, |session, now| {
            let made = session.checkpoint(Operation::ApiCall, now).id;
            session.commit(&made, now).unwrap();
            made
        });
        make.await.unwrap().into()
    }

    pub(crate) async fn begins_a_call(&self, id: &str) {
        let cycle = CycleRef { session: id, tool_use_id: "toolu_9", name: "pay", input: "{}" };
        let begin = self.sessions.change(id, |session, now| {
            let cycle = session.begin_cycle(&cycle, now);
            session.start_cycle(cycle);
        });
        begin.await.unwrap();
    }

    pub(crate) async fn leaves(self) {
        self.store.close().await;
    }
}

/// A folder with a database of two sessions: `fine`, and `s/1`, which is refused for its third message.
pub(crate) async fn two() -> (Folder, PathBuf) {
    let folder = Folder::new();
    let path = folder.path("sessions.db");
    let agent = Agent::on(&path).await;
    agent.says("fine", &[HELLO, PAYS]).await;
    agent.says("s/1", &[HELLO, PAYS, ORPHAN, DONE]).await;
    agent.leaves().await;
    (folder, path)
}

/// What a session holds, as another process would find it.
async fn text(path: &Path, id: &str) -> String {
    let agent = Agent::on(path).await;
    let session = agent.sessions.stored(id).await.unwrap().unwrap();
    agent.leaves().await;
    session.transcript().to_json()
}

fn contents(folder: &Folder) -> BTreeMap<String, Vec<u8>> {
    let is_kept = |name: &String| !name.ends_with("-shm");
    let names = folder.names().into_iter().filter(is_kept);
    names.map(|name| (name.clone(), fs::read(folder.path(&name)).unwrap())).collect()
}

#[tokio::test]
async fn every_session_of_a_database_is_checked_and_nothing_changes() {
    let (folder, _) = two().await;
    let before = contents(&folder);
    let done = folder.session(&["check", "sessions.db"]);
    let expected = "\
✓ sessions.db#fine  Anthropic Messages · 2 messages · 86 bytes
✗ sessions.db#s/1  Anthropic Messages · 4 messages · 227 bytes
  sessions.db#s/1  Orphaned tool_result: toolu_01A
      message 2, block 0 · rule 1
      Anthropic refuses it: messages.2.content.0: unexpected `tool_use_id` found in `tool_result` \
                    blocks: toolu_01A. Each `tool_result` block must have a corresponding \
                    `tool_use` block in the previous message.

2 sessions: 1 clean, 1 with findings

See how to repair it:  tool-guard session repair --session s/1 sessions.db
";
    assert_eq!((done.code, &*done.out, &*done.err), (1, expected, ""));
    assert_eq!(folder.session(&["check", "--session", "fine", "sessions.db"]).code, 0);
    // Any name will do, and a folder is looked into.
    fs::rename(folder.path("sessions.db"), folder.path("kept")).unwrap();
    let lines = folder.json_of(1, &["check", "."]);
    let told: Vec<_> = lines.iter().map(|line| (&line["session"], &line["status"])).collect();
    assert_eq!(told, [(&json!("fine"), &json!("clean")), (&json!("s/1"), &json!("findings"))]);
    assert_eq!(
        (&lines[1]["form"], &lines[1]["findings"][0]["line"]),
        (&json!("stored"), &json!(null))
    );
    for command in [&["repair"][..], &["diff"], &["checkpoints", "--session", "s/1"]] {
        folder.session(&[command, &["kept"]].concat());
    }
    let after: Vec<_> = contents(&folder).into_values().collect();
    assert_eq!(after, before.into_values().collect::<Vec<_>>(), "byte for byte");
}

#[tokio::test]
async fn a_stored_session_is_mended_and_its_old_messages_stay_beside() {
    let (folder, path) = two().await;
    let agent = Agent::on(&path).await;
    agent.sessions.load("s/1").await.unwrap();
    let old = text(&path, "s/1").await;

    let planned = folder.ends(1, &["repair", "sessions.db"]);
    assert!(planned.out.contains("sessions.db#s/1  turn the result into text"));
    let hint = "tool-guard session repair --write --session s/1 sessions.db\n";
    assert!(planned.out.ends_with(hint), "{}", planned.out);
    let differs = folder.session(&["diff", "--session", "s/1", "sessions.db"]);
    assert!(differs.out.contains("@@ sessions.db#s/1, record 2 changes @@"), "{}", differs.out);
    assert_eq!(text(&path, "s/1").await, old);

    let done = folder.session(&["repair", "--write", "sessions.db"]);
    assert_eq!((done.code, &*done.err), (0, ""), "{}", done.out);
    let backup = folder.only("sessions.db.s_1.bak-");
    assert!(
        done.out.contains(&format!(
            "repaired: 1 change; the old messages are in {}",
            folder.path(&backup).display()
        )),
        "{}",
        done.out
    );
    assert_eq!(folder.read(&backup), old);
    assert_eq!(folder.session(&["check", &backup]).code, 1, "it is a session, too");
    assert_eq!(folder.session(&["check", "sessions.db"]).code, 0);
    let new = text(&path, "s/1").await;
    assert!(new.contains("receipt ch_1") && !new.contains("tool_result\""), "{new}");

    // The agent that had it open finds a conflict once, and goes on with the mended one.
    let more = FORMAT.read(HELLO).unwrap();
    let push = |session: &mut tr_integrity::Session, _| session.push(more.clone());
    let conflict = agent.sessions.change("s/1", push).await.unwrap_err();
    assert!(conflict.is_conflict(), "{conflict}");
    agent.sessions.change("s/1", push).await.unwrap();
    agent.leaves().await;
    assert_eq!(text(&path, "s/1").await, format!("{},{HELLO}]", &new[..new.len() - 1]));
    let names = folder.names().len();
    assert_eq!(folder.session(&["repair", "--write", "sessions.db"]).code, 0);
    assert_eq!(folder.names().len(), names, "what is clean is not written again");
}

#[tokio::test]
async fn stored_sessions_have_checkpoints_of_their_own() {
    let (folder, path) = two().await;
    let agent = Agent::on(&path).await;
    agent.says("fine", &[HELLO]).await;
    let (lines, code) =
        folder.json(&["checkpoints", "--create", "--session", "fine", "sessions.db"]);
    assert_eq!((code, &lines[0]["created"]), (0, &json!("fine#1")));
    let listed = &lines[0]["checkpoints"][0];
    agent.leaves().await;
    let agent = Agent::on(&path).await;
    let same = agent.sessions.stored("fine").await.unwrap().unwrap().checkpoints()[0].clone();
    let expected = json!({
        "id": "fine#1", "sessionId": "fine", "timestamp": listed["timestamp"], "messageIndex": 3,
        "contentHash": same.content_hash, "operation": "manual", "committed": true, "holds": true,
    });
    assert_eq!(*listed, expected);
    assert_eq!(same.operation, Operation::Manual);

    // What the library has made is seen here, and calls push out their own, not this one.
    let mut last = String::new();
    for _ in 0..12 {
        agent.says("fine", &[PAYS, HELLO]).await;
        last = agent.checkpoint("fine").await;
    }
    agent.leaves().await;
    let done = folder.session(&["checkpoints", "--session", "fine", "sessions.db"]);
    assert_eq!(done.out.matches(" UTC ").count(), 11, "{}", done.out);
    assert!(done.out.contains("UTC      3 messages  made by hand\n"), "{}", done.out);
    assert!(done.out.contains("UTC     27 messages  before a call of the model\n"), "{}", done.out);
    assert!(
        done.out.contains(&format!("--to '{last}' --session fine sessions.db")),
        "{}",
        done.out
    );

    let back = ["rollback", "--to", "1", "--session", "fine", "sessions.db"];
    let done = folder.session(&back);
    assert_eq!(done.code, 1);
    let planned = "nothing is written yet: the last 24 messages (1.0 kB) would go, 3 messages would be left\n";
    assert!(done.out.contains(planned), "{}", done.out);
    let old = text(&path, "fine").await;
    let (lines, code) = folder.json(&[&back[..], &["--write"]].concat());
    assert_eq!((code, &lines[0]["status"]), (0, &json!("rolledBack")));
    assert_eq!(
        (&lines[0]["checkpoint"], &lines[0]["newMessageCount"]),
        (&json!("fine#1"), &json!(3))
    );
    assert_eq!(folder.read(&folder.only("sessions.db.fine.bak-")), old);
    assert_eq!(text(&path, "fine").await, format!("[{HELLO},{PAYS},{HELLO}]"));
    let done = folder.session(&["rollback", "--to", &last, "--session", "fine", "sessions.db"]);
    assert!(done.err.contains(&format!("Checkpoint not found: {last}")), "{}", done.err);

    let note = ["checkpoints", "--create", "--note", "x", "--session", "fine", "sessions.db"];
    let done = folder.session(&note);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("has no place for a note"), "{}", done.err);
}

#[tokio::test]
async fn without_a_checkpoint_the_way_back_is_to_before_the_fault() {
    let (folder, path) = two().await;
    let back = ["rollback", "--before-fault", "--write", "--session", "s/1", "sessions.db"];
    let done = folder.session(&back);
    assert_eq!((done.code, &*done.err), (0, ""), "{}", done.out);
    assert_eq!(text(&path, "s/1").await, format!("[{HELLO},{PAYS}]"));
    let done = folder.session(&back);
    assert!(done.out.contains("nothing to roll back: it ends there, with 2 messages"));
}

#[tokio::test]
async fn a_stored_session_begins_anew_and_is_archived() {
    let (folder, path) = two().await;
    let old = text(&path, "s/1").await;
    let reset = ["reset", "--archive", "--write", "--session", "s/1", "sessions.db"];
    let (lines, code) = folder.json(&reset);
    assert_eq!((code, &lines[0]["archived"]), (0, &json!(true)));
    assert_eq!(folder.read(&folder.only("sessions.db.s_1.archive-")), old);
    let agent = Agent::on(&path).await;
    let session = agent.sessions.stored("s/1").await.unwrap().unwrap();
    assert_eq!((session.transcript().len(), session.archives().count()), (0, 1));
    agent.leaves().await;
    assert_eq!(folder.session(&["check", "sessions.db"]).code, 0);
}

#[tokio::test]
async fn one_session_has_to_be_named_where_there_are_several() {
    let (folder, path) = two().await;
    let done = folder.ends(2, &["reset", "--write", "sessions.db"]);
    assert_eq!(done.err, "✗ sessions.db has 2 sessions\n  → name one by --session: fine, s/1\n");
    let done = folder.ends(2, &["check", "--session", "other", "sessions.db"]);
    assert_eq!(done.err, "✗ sessions.db has no session other\n  → there are: fine, s/1\n");
    folder.write("a.json", "[]");
    let done = folder.ends(2, &["check", "--session", "fine", "a.json"]);
    assert!(done.err.contains("is no database, and --session names a session in one"));

    let agent = Agent::on(&path).await;
    assert!(agent.sessions.delete("s/1").await.unwrap());
    agent.leaves().await;
    assert_eq!(folder.session(&["reset", "--write", "sessions.db"]).code, 0, "there is but one");
}

#[tokio::test]
async fn a_session_in_which_a_call_runs_is_not_written() {
    let (folder, path) = two().await;
    let agent = Agent::on(&path).await;
    agent.begins_a_call("s/1").await;
    let checked = folder.session(&["check", "--session", "s/1", "sessions.db"]);
    assert!(checked.out.contains("1 call on the way: toolu_9"), "{}", checked.out);
    let before = contents(&folder);
    for command in [&["repair", "--write"][..], &["reset", "--write"], &["checkpoints", "--create"]]
    {
        let done = folder.session(&[command, &["--session", "s/1", "sessions.db"]].concat());
        assert_eq!((done.code, &*done.out), (2, ""));
        let what = "✗ sessions.db#s/1 has a running tool call, toolu_9, and ";
        assert!(done.err.starts_with(what), "{}", done.err);
        assert!(done.err.contains("→ wait until the call has ended, or stop that program"));
    }
    assert_eq!(contents(&folder), before);
    // Once nobody has it open, the call's process has died.
    agent.leaves().await;
    let done = folder.session(&["repair", "--write", "--session", "s/1", "sessions.db"]);
    assert_eq!((done.code, &*done.err), (0, ""), "{}", done.out);
    assert!(text(&path, "s/1").await.contains("outcome unknown, may have run"));
}

/// The process that made the last call has died.
#[tokio::test]
async fn an_answer_to_the_last_call_is_written_as_planned() {
    let folder = Folder::new();
    let path = folder.path("sessions.db");
    let agent = Agent::on(&path).await;
    let pays = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_9","name":"pay","input":{}}]}"#;
    agent.says("s", &[HELLO, pays]).await;
    agent.begins_a_call("s").await;
    agent.leaves().await;
    let old = text(&path, "s").await;
    let repair = ["repair", "--close-tail", "sessions.db"];
    let (planned, code) = folder.json(&repair);
    assert_eq!((code, &planned[0]["status"]), (1, &json!("planned")));
    let (done, code) = folder.json(&[&repair[..], &["--write"]].concat());
    assert_eq!((code, &done[0]["status"]), (0, &json!("repaired")), "{}", done[0]);
    for member in ["repairs", "losses", "messages", "messagesAfter", "bytesAfter"] {
        assert_eq!(planned[0][member], done[0][member], "{member}");
    }
    assert_eq!(done[0]["repairs"].as_array().unwrap().len(), 1);
    assert_eq!(folder.read(&folder.only("sessions.db.s.bak-")), old);
    let new = text(&path, "s").await;
    assert_eq!(new.len(), usize::try_from(done[0]["bytesAfter"].as_u64().unwrap()).unwrap());
    assert!(new.contains("outcome unknown, may have run"), "{new}");
    assert_eq!(folder.session(&["repair", "--close-tail", "--write", "sessions.db"]).code, 0);
}

#[tokio::test]
async fn it_is_read_while_an_agent_writes() {
    let (folder, path) = two().await;
    let agent = Agent::on(&path).await;
    agent.sessions.load("fine").await.unwrap();
    let mut child = folder.command(&["check", "--json", "--session", "fine", "sessions.db"]);
    for round in 0..tr_testkit::rounds(5, 200) {
        let child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
        for _ in 0..10 {
            agent.says("fine", &[HELLO, PAYS]).await;
        }
        let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
        let output = output.await.unwrap();
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &line["status"]), (Some(0), &json!("clean")));
        let messages = line["messages"].as_u64().unwrap();
        assert!((2 + 20 * round..=22 + 20 * round).contains(&messages), "{messages} in {round}");
    }
    agent.leaves().await;
    assert_eq!(
        folder.names(),
        ["sessions.db"],
        "SQLite's files went with the last who had it open"
    );
}
