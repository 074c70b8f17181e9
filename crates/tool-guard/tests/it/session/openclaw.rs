//! OpenClaw's database of an agent's sessions, with the tables of version 23 as far as they matter here. `cargo lab
//! peers` has the real one.
use super::folder::Folder;
use rusqlite::{Connection, params};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

const NAME: &str = "openclaw-agent.sqlite";

const TABLES: &str = "
PRAGMA journal_mode = wal;
PRAGMA user_version = 23;
CREATE TABLE schema_meta (role TEXT, schema_version INTEGER);
INSERT INTO schema_meta VALUES ('agent', 23);
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, transcript_updated_at INTEGER, transcript_observed_at INTEGER);
INSERT INTO session_windows VALUES ('s', 5, 7);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, event_zstd BLOB,
    event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id, seq));
CREATE TABLE transcript_event_identities (session_id TEXT, event_id TEXT, seq INTEGER, event_type TEXT, parent_id TEXT,
    message_idempotency_key TEXT, created_at INTEGER, PRIMARY KEY (session_id, event_id),
    FOREIGN KEY (session_id, seq) REFERENCES transcript_events (session_id, seq));
CREATE TABLE session_transcript_active_events (session_id TEXT, active_position INTEGER, event_seq INTEGER,
    message_position INTEGER, context_eligible INTEGER, PRIMARY KEY (session_id, active_position));
CREATE TABLE session_transcript_index_state (session_id TEXT PRIMARY KEY, indexed_seq INTEGER, leaf_event_id TEXT,
    needs_rebuild INTEGER, active_event_count INTEGER, active_message_count INTEGER, updated_at INTEGER);
INSERT INTO session_transcript_index_state VALUES ('s', 4, 'd', 0, 4, 3, 1);
CREATE TABLE transcript_rewrite_watermarks (session_id TEXT PRIMARY KEY, generation TEXT, updated_at INTEGER);
INSERT INTO transcript_rewrite_watermarks VALUES ('s', 'first', 1);
CREATE TABLE session_transcript_cold_archives (session_id TEXT PRIMARY KEY);
";

const EVENTS: [&str; 5] = [
    r#"{"type":"session","version":4,"id":"s","timestamp":"2026-11-28T14:00:00.000Z","cwd":"/w"}"#,
    r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-28T14:00:01.000Z","message":{"role":"user","content":"Pay.","idempotencyKey":"r:user"}}"#,
    r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-11-28T14:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_1","name":"exec","arguments":{"command":"pay"}}],"api":"openai-completions","stopReason":"toolUse"}}"#,
    r#"{"type":"custom","customType":"openclaw.cache-ttl","data":{},"id":"c","parentId":"b","timestamp":"2026-11-28T14:00:03.000Z"}"#,
    r#"{"type":"message","id":"d","parentId":"c","timestamp":"2026-11-28T14:00:04.000Z","message":{"role":"user","content":"Well?"}}"#,
];

/// A folder with a database that has these events; the third is compressed.
fn with(events: &[&str]) -> (Folder, Connection) {
    let folder = Folder::new();
    let agent = Connection::open(folder.path(NAME)).unwrap();
    agent.execute_batch(TABLES).unwrap();
    for (seq, event) in (0_i64..).zip(events) {
        let packed =
            (seq == 2).then(|| compress_to_vec(event.as_bytes(), CompressionLevel::Fastest));
        let json = packed.is_none().then_some(*event);
        agent
            .execute(
                "INSERT INTO transcript_events VALUES ('s', ?1, ?2, ?3, ?4, NULL, NULL)",
                params![seq, json, 1_000 + seq, packed],
            )
            .unwrap();
    }
    (folder, agent)
}

fn of<T: rusqlite::types::FromSql>(agent: &Connection, sql: &str) -> T {
    agent.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn its_sessions_are_checked_and_printed_beside_a_gateway() {
    let (folder, _gateway) = with(&EVENTS);
    let done = folder.session(&["check", "."]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    for said in [
        "openclaw-agent.sqlite#s  OpenClaw version 4 · 3 messages",
        "openclaw-agent.sqlite#s:3  Incomplete tool_use: call_1",
        "OpenClaw answers this call \"missing tool result\" on resume: the model is not told that it may have run",
        "tool-guard session repair --session s ./openclaw-agent.sqlite",
    ] {
        assert!(done.out.contains(said), "{said}: {}", done.out);
    }
    let printed = folder.session(&["export", NAME]);
    assert_eq!((printed.code, printed.out), (0, EVENTS.map(|event| format!("{event}\n")).concat()));
}

#[test]
fn a_repair_writes_the_events_and_what_is_counted_of_them() {
    let (folder, agent) = with(&EVENTS);
    let held = folder.session(&["repair", "--write", NAME]);
    assert_eq!(held.code, 2, "{}", held.out);
    let pid = format!("(process {})", std::process::id());
    assert!(held.err.contains("has the database open; nothing was changed"), "{}", held.err);
    assert!(held.err.contains(&pid), "{pid}: {}", held.err);
    drop(agent);

    let done = folder.session(&["repair", "--write", NAME]);
    assert_eq!((done.code, &*done.err), (0, ""), "{}", done.out);
    let kept = folder.only("openclaw-agent.sqlite.s.bak-");
    assert_eq!(folder.read(&kept), EVENTS.map(|event| format!("{event}\n")).concat());
    assert_eq!(folder.session(&["check", NAME]).code, 0);
    let printed = folder.session(&["export", NAME]).out;
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[3].contains("outcome unknown, may have run"), "{printed}");
    assert_eq!((lines[2], lines[5]), (EVENTS[2], EVENTS[4]), "the others stay");

    let agent = Connection::open(folder.path(NAME)).unwrap();
    let text = |sql| of::<String>(&agent, sql);
    assert_eq!(
        text(
            "SELECT group_concat(seq || ' ' || created_at, ', ') FROM (SELECT * FROM transcript_events ORDER BY seq)"
        ),
        "0 1795874400000, 1 1795874401000, 2 1795874402000, 3 1795874402000, 4 1795874403000, 5 1795874404000",
        "as their timestamps say"
    );
    assert_eq!(
        text(
            "SELECT group_concat(event_seq || ':' || coalesce(message_position, '-'), ' ') FROM (SELECT * FROM session_transcript_active_events ORDER BY active_position)"
        ),
        "1:0 2:1 3:2 4:- 5:3"
    );
    assert_eq!(
        text(
            "SELECT message_idempotency_key FROM transcript_event_identities WHERE event_id = 'a'"
        ),
        "r:user"
    );
    let state = "SELECT indexed_seq || ' ' || leaf_event_id || ' ' || needs_rebuild || ' ' || active_event_count || ' ' || active_message_count FROM session_transcript_index_state";
    assert_eq!(text(state), "5 d 0 5 4");
    assert_ne!(text("SELECT generation FROM transcript_rewrite_watermarks"), "first");
    assert!(
        of::<i64>(&agent, "SELECT transcript_updated_at FROM session_windows") > 1_700_000_000_000
    );
    assert_eq!(of::<i64>(&agent, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

#[test]
fn what_only_openclaw_can_write_is_left_to_it() {
    let branch = r#"{"type":"message","id":"e","parentId":"a","timestamp":"2026-11-28T14:00:05.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_2","name":"exec","arguments":{}}]}}"#;
    let end = r#"{"type":"message","id":"f","parentId":"e","timestamp":"2026-11-28T14:00:06.000Z","message":{"role":"user","content":"Well?"}}"#;
    let (folder, agent) = with(&[&EVENTS[..], &[branch, end]].concat());
    drop(agent);
    let done = folder.session(&["repair", "--write", NAME]);
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(done.err.contains("export the session, and repair that"), "{}", done.err);
    assert!(!folder.names().iter().any(|name| name.contains(".bak-")), "{:?}", folder.names());

    let (folder, agent) = with(&EVENTS);
    agent.execute_batch("UPDATE schema_meta SET schema_version = 24").unwrap();
    drop(agent);
    let done = folder.session(&["check", NAME]);
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(done.err.contains("version 24; known is 23"), "{}", done.err);

    let (folder, agent) = with(&EVENTS);
    agent.execute_batch("INSERT INTO session_transcript_cold_archives VALUES ('s')").unwrap();
    drop(agent);
    let done = folder.session(&["repair", "--write", NAME]);
    assert!(done.err.contains("has the older events of this session in a file"), "{}", done.err);

    // A later version of OpenClaw may be able to read it.
    let (folder, agent) = with(&EVENTS);
    agent
        .execute_batch("UPDATE transcript_events SET event_json = NULL, event_zstd = x'28b52ffd' WHERE seq = 3")
        .unwrap();
    drop(agent);
    let checked = folder.session(&["check", NAME]).out;
    assert!(checked.contains("openclaw-agent.sqlite#s:4  Torn record: 1 byte"), "{checked}");
    let done = folder.session(&["repair", "--write", NAME]);
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(done.err.contains("has events that cannot be read"), "{}", done.err);
    let agent = Connection::open(folder.path(NAME)).unwrap();
    assert_eq!(
        of::<i64>(&agent, "SELECT length(event_zstd) FROM transcript_events WHERE seq = 3"),
        4
    );

    let (folder, agent) = with(&EVENTS);
    drop(agent);
    let done = folder.session(&["checkpoints", "--create", NAME]);
    assert!(done.err.contains("no place for checkpoints"), "{}", done.err);
}

#[test]
fn a_session_is_named_by_the_beginning_of_its_id() {
    let (home, agent) = with(&EVENTS);
    agent
        .execute_batch(
            "PRAGMA foreign_keys = false;
             UPDATE transcript_events SET session_id = '01a06c43-4444';
             INSERT INTO transcript_events SELECT '01b06c43-5555', seq, event_json, created_at, event_zstd, NULL, NULL
                FROM transcript_events;",
        )
        .unwrap();
    drop(agent);
    let file = format!(".openclaw/agents/main/agent/{NAME}");
    std::fs::create_dir_all(home.path(".openclaw/agents/main/agent")).unwrap();
    std::fs::rename(home.path(NAME), home.path(&file)).unwrap();
    let done = home.at_home(&["check", "01a06c43"]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    let head = format!("✗ {}#01a06c43-4444  OpenClaw", home.path(&file).display());
    assert!(done.out.starts_with(&head), "{}", done.out);
    assert!(!done.out.contains("01b06c43"), "{}", done.out);
    let printed = home.at_home(&["export", "01b06c43"]);
    assert_eq!(printed.out, EVENTS.map(|event| format!("{event}\n")).concat(), "{}", printed.err);
    home.write(".claude/projects/p/01b06c43-6666.jsonl", "{}");
    let done = home.at_home(&["repair", "--write", "01b06c43"]);
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(done.err.contains(" --session 01b06c43-5555 "), "{}", done.err);
}
