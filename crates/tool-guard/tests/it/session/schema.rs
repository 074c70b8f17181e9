//! What `--json` prints is what `schemas/session-report.schema.json` says, member by member.
use super::{
    agents::real,
    database::{Agent, two},
    folder::{FINE, Folder, ORPHANED},
    lines::{CLAUDE, OPENCLAW},
};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let path = "../../schemas/session-report.schema.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
});

/// The schema, if nothing may be there that it does not name.
static STRICT: LazyLock<Validator> = LazyLock::new(|| {
    let mut schema = SCHEMA.clone();
    close(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
});

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.contains_key("required") {
                members.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Fails if a line of JSON is not as the schema says, or has a member that it does not name.
pub(crate) fn is_described(line: &Value) {
    if let Err(error) = STRICT.validate(line) {
        panic!("{error}\n{line}");
    }
}

#[test]
fn the_schema_holds_and_refuses_what_it_does_not_name() {
    jsonschema::meta::validate(&SCHEMA).unwrap();
    let open = jsonschema::validator_for(&SCHEMA).unwrap();
    let folder = Folder::with("a.json", ORPHANED);
    let line = folder.json(&["check", "a.json"]).0.remove(0);
    assert_eq!(line["version"], 1);
    for (pointer, name) in [("", "new"), ("/findings/0", "new")] {
        let mut more = line.clone();
        more.pointer_mut(pointer).unwrap()[name] = json!(1);
        assert!(!STRICT.is_valid(&more), "{more}");
        assert!(open.is_valid(&more), "members may be added: {more}");
    }
    for wrong in [json!({"version": 2}), json!({"status": "fine"}), json!({"messages": "4"})] {
        let mut line = line.clone();
        let (name, value) = wrong.as_object().unwrap().iter().next().unwrap();
        line[name] = value.clone();
        assert!(!open.is_valid(&line), "{line}");
    }
}

/// All members of objects that the schema, or a part of it, names.
fn named(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(properties) = members.get("properties").and_then(Value::as_object) {
                names.extend(properties.keys().cloned());
            }
            members.values().for_each(|part| named(part, names));
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, names)),
        _ => {}
    }
}

/// All members of objects in what was printed.
fn told(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            names.extend(members.keys().cloned());
            members.values().for_each(|member| told(member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| told(item, names)),
        _ => {}
    }
}

/// What the commands printed; each line is as the schema says, for [`Folder::json`] asks it.
#[derive(Default)]
struct Seen {
    statuses: BTreeSet<String>,
    members: BTreeSet<String>,
}

impl Seen {
    /// Runs a command, which may write.
    fn run(&mut self, folder: &Folder, arguments: &[&str]) -> Vec<Value> {
        let (lines, _) = folder.json(arguments);
        assert!(!lines.is_empty(), "{arguments:?}");
        for line in &lines {
            let status = line["status"].as_str().unwrap();
            self.statuses.insert(format!("{} {status}", arguments[0]));
            told(line, &mut self.members);
        }
        lines
    }

    fn files(&mut self) {
        let folder = Folder::new();
        let message = r#"{"role":"narrator","content":"Meanwhile…"}"#;
        folder.write("s/a.json", ORPHANED);
        folder.write("s/fine.json", FINE);
        folder.write("s/gemini.jsonl", real("gemini-killed.jsonl"));
        folder.write("s/notes.md", "# Notes");
        folder.write("s/torn.json", &FINE[..FINE.len() - 4]);
        folder.write("s/narrated.json", format!("[{message}, {}", &FINE[1..]));
        for command in ["check", "repair", "diff"] {
            self.run(&folder, &[command, "s"]);
        }
        for command in ["checkpoints", "reset"] {
            self.run(&folder, &[command, "s/gemini.jsonl"]);
            self.run(&folder, &[command, "s/torn.json"]);
        }
        self.run(&folder, &["rollback", "--before-fault", "s/gemini.jsonl"]);
        self.run(&folder, &["rollback", "--before-fault", "s/torn.json"]);

        fs::hard_link(folder.path("s/a.json"), folder.path("s/other")).unwrap();
        self.run(&folder, &["checkpoints", "--create", "--note", "as it was", "s/a.json"]);
        self.run(&folder, &["rollback", "--to", "1", "s/a.json"]);
        self.run(&folder, &["rollback", "--before-fault", "s/a.json"]);
        self.run(&folder, &["repair", "--write", "s/a.json"]);
        self.run(&folder, &["reset", "s/fine.json"]);
        self.run(&folder, &["reset", "--archive", "--write", "s/fine.json"]);
        self.run(&folder, &["reset", "--write", "s/fine.json"]);
        let thinks = r#"[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_7","name":"pay","input":{}}]},{"role":"user","content":"so?"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so"}]}]"#;
        folder.write("s/thinks.json", thinks);
        self.run(&folder, &["repair", "s/thinks.json"]);
        let image = r#"[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"PCFET0NUWVBF"}}]}]"#;
        folder.write("s/image.json", image);
        self.run(&folder, &["repair", "--write", "--extract", "kept", "s/image.json"]);
        folder.write("s/prompt.json", r#"{"system":"Be kind.","messages":[]}"#);
        self.run(&folder, &["reset", "s/prompt.json"]);
    }

    fn lines(&mut self) {
        let folder = Folder::with("claude.jsonl", format!("{CLAUDE}{}\n", "\0".repeat(9)));
        let call = r#"{"type":"toolCall","id":"call_1","name":"pay","arguments":{"order":42}}"#;
        let said = OPENCLAW.replace(call, r#"{"type":"text","text":"Paid."}"#);
        folder.write("openclaw.jsonl", said);
        let lines = self.run(&folder, &["checkpoints", "--create", "openclaw.jsonl"]);
        assert!(!lines[0]["turns"].as_array().unwrap().is_empty(), "{}", lines[0]);
        self.run(&folder, &["check", "claude.jsonl"]);
        folder.write("lost.jsonl", CLAUDE.replace(r#""parentUuid":"u3""#, r#""parentUuid":"u9""#));
        self.run(&folder, &["check", "lost.jsonl"]);
        self.run(&folder, &["repair", "claude.jsonl"]);
        self.run(&folder, &["rollback", "--before-fault", "--write", "claude.jsonl"]);
        self.run(&folder, &["rollback", "--before-fault", "claude.jsonl"]);
        let (first, rest) = CLAUDE.split_once('\n').unwrap();
        folder.write("torn.jsonl", format!("{first}\n{}\n{rest}", &first[..90]));
        let lines = self.run(&folder, &["repair", "torn.jsonl"]);
        assert!(lines[0]["refused"].is_string(), "{}", lines[0]);
        self.run(&folder, &["repair", "--write", "torn.jsonl"]);

        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{}}]}"#;
        let again = FINE.trim_end().trim_end_matches(']').replacen('[', ",", 1);
        folder.write("twice.json", format!("{}{again},\n{call},\n{}", start(), end()));
        self.run(&folder, &["repair", "twice.json"]);
        self.run(&folder, &["repair", "--mode", "remove", "twice.json"]);
    }

    async fn database(&mut self) {
        let (folder, path) = two().await;
        let agent = Agent::on(&path).await;
        agent.checkpoint("fine").await;
        agent.begins_a_call("fine").await;
        self.run(&folder, &["check", "sessions.db"]);
        self.run(&folder, &["checkpoints", "--session", "fine", "sessions.db"]);
        self.run(&folder, &["repair", "--session", "s/1", "sessions.db"]);
        agent.leaves().await;
    }
}

/// `FINE` without its end.
fn start() -> &'static str {
    FINE.trim_end().trim_end_matches(']')
}

/// A last message.
fn end() -> &'static str {
    r#"{"role":"user","content":"And?"}]"#
}

#[tokio::test]
async fn all_commands_and_statuses_are_as_the_schema_says_and_none_of_its_members_is_made_up() {
    let mut seen = Seen::default();
    seen.files();
    seen.lines();
    seen.database().await;
    let expected = [
        ("check", &["clean", "findings", "notJudged", "skipped", "unreadable"][..]),
        ("checkpoints", &["clean", "notJudged", "unreadable"]),
        ("diff", &["clean", "findings", "notJudged", "skipped", "unreadable"]),
        ("repair", &["clean", "notJudged", "planned", "repaired", "skipped", "unreadable"]),
        ("reset", &["clean", "notJudged", "planned", "reset", "unreadable"]),
        ("rollback", &["clean", "notJudged", "planned", "rolledBack", "unreadable"]),
    ];
    let expected = expected.iter().flat_map(|(command, statuses)| {
        statuses.iter().map(move |status| format!("{command} {status}"))
    });
    assert_eq!(seen.statuses, expected.collect());
    let mut members = BTreeSet::new();
    named(&SCHEMA, &mut members);
    let unseen: Vec<_> = members.difference(&seen.members).collect();
    assert!(unseen.is_empty(), "no command printed {unseen:?}");
}
