//! The sections `records` and `identity` of a configuration: each key acts, and what cannot be used says so.
use super::client::{BIN, Client, ledger, text};
use rustix::process::Signal;
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command,
};

/// A key; a value of it; what the configuration says beside it; what is done; what is seen without the
/// key; and with it. `@` is the row's folder.
type Row = [&'static str; 6];

const LONG: &str = "8f14e45fceea467f9b0cab12";

const ROWS: &[Row] = &[
    ["records.where", "\"@/own.db\"", "{}", "pay:k file:own.db", "charged absent", "charged there"],
    ["records.bodies", "\"digest\"", "{}", "pay:k pay:k", "charged charged", "charged ended"],
    ["records.key_file", "\"@/key\"", "{}", "pay:k-secret find:k-secret", "charged 1", "charged 0"],
    [
        "records.name",
        "\"shop\"",
        "{}",
        "pay:k other pay:k paid",
        "charged charged 2",
        "charged charged 1",
    ],
    [
        "identity.acme.call",
        "\"acme/call\"",
        "{}",
        "call:8f14e45fceea467f9b0cab12 again call:8f14e45fceea467f9b0cab12 paid",
        "charged charged 2",
        "charged charged 1",
    ],
    [
        "identity.acme.conversation",
        "\"acme/chat\"",
        r#"{"identity": {"acme": {"call": "acme/call", "strong": true}}}"#,
        "call:1:a call:1:b paid",
        "charged charged 1",
        "charged charged 2",
    ],
    [
        "identity.acme.strong",
        "true",
        r#"{"identity": {"acme": {"call": "acme/call"}}}"#,
        "call:1 again call:1 paid",
        "charged charged 2",
        "charged charged 1",
    ],
];

/// A folder with a configuration, and guards by it.
struct Stage {
    folder: PathBuf,
    ledger: PathBuf,
    config: &'static str,
    options: Vec<String>,
    vars: Vec<(&'static str, String)>,
}

impl Stage {
    fn new(config: &Value) -> Self {
        let ledger = ledger();
        let folder = ledger.with_extension("configured");
        fs::create_dir_all(&folder).unwrap();
        let key = folder.join("key");
        fs::write(&key, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
            .unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let config = config.to_string().replace("@/", &format!("{}/", folder.display()));
        fs::write(folder.join("guard.json"), config).unwrap();
        Self { folder, ledger, config: "guard.json", options: Vec::new(), vars: Vec::new() }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// A guard; `other` has another command, for the same server.
    fn open(&self, other: bool) -> Client {
        let mut command = Command::new(BIN);
        command.args(["mcp", "--config", &self.file(self.config)]).args(&self.options).arg("--");
        if other {
            command.arg("env");
        }
        command.args([BIN, "__serve", "--ledger"]).arg(&self.ledger);
        command.env("HOME", &self.folder).envs(self.vars.iter().cloned());
        Client::start(command, self.ledger.clone())
    }

    fn paid(&self) -> usize {
        fs::read_to_string(&self.ledger).unwrap_or_default().matches("charge_card").count()
    }

    fn play(&self, does: &str) -> String {
        let mut client = self.open(false);
        let mut seen = Vec::new();
        // The ledger goes with its client.
        let mut paid = 0;
        for (id, word) in (1..).zip(does.split(' ')) {
            let parts: Vec<_> = word.split(':').collect();
            let meta = match parts[..] {
                ["pay", key] => json!({ "idempotencyKey": key }),
                ["call", call] => json!({ "acme/call": call }),
                ["call", call, chat] => json!({ "acme/call": call, "acme/chat": chat }),
                ["again" | "other"] => {
                    client.signal(Signal::KILL);
                    client.wait();
                    paid += self.paid();
                    let _ = fs::remove_file(&self.ledger);
                    client = self.open_after(client, parts[0] == "other");
                    continue;
                }
                ["paid"] => {
                    seen.push((paid + self.paid()).to_string());
                    continue;
                }
                ["file", name] => {
                    let is_there = self.folder.join(name).exists();
                    seen.push(if is_there { "there" } else { "absent" }.into());
                    continue;
                }
                ["find", what] => {
                    client.signal(Signal::KILL);
                    client.wait();
                    let found = holds(&client.state().join("tool-guard"), what);
                    seen.push(u8::from(found).to_string());
                    continue;
                }
                _ => panic!("what is {word}?"),
            };
            let params =
                json!({ "name": "charge_card", "arguments": { "order": "o-1" }, "_meta": meta });
            let said = text(&client.ask_for(id, "tools/call", params));
            seen.push(match &*said {
                "charged order o-1" => "charged".into(),
                said if said.contains("has ended") => "ended".into(),
                other => other.to_owned(),
            });
        }
        seen.join(" ")
    }

    /// The next guard, before the last one's state goes with it.
    fn open_after(&self, last: Client, other: bool) -> Client {
        let state = last.state();
        let kept = self.folder.join("kept");
        let is_there = fs::rename(&state, &kept).is_ok();
        drop(last);
        if is_there {
            fs::rename(kept, state).unwrap();
        }
        self.open(other)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether a file in this folder has these bytes.
fn holds(folder: &std::path::Path, what: &str) -> bool {
    let files = fs::read_dir(folder).unwrap().flatten().map(|file| file.path());
    let bytes = files.filter(|path| path.is_file()).map(|path| fs::read(path).unwrap());
    bytes.into_iter().any(|bytes| bytes.windows(what.len()).any(|part| part == what.as_bytes()))
}

fn put(config: &mut Value, path: &str, value: Value) {
    let (section, key) = path.rsplit_once('.').unwrap();
    let section = section.split('.').fold(config, |at, name| {
        let members = at.as_object_mut().unwrap();
        members.entry(name).or_insert_with(|| Value::Object(Map::new()))
    });
    section[key] = value;
}

#[test]
fn each_key_of_records_and_identity_acts() {
    for [key, value, beside, does, without, with] in ROWS {
        let mut config: Value = serde_json::from_str(beside).unwrap();
        assert_eq!(Stage::new(&config).play(does), *without, "without {key}");
        put(&mut config, key, serde_json::from_str(value).unwrap());
        assert_eq!(Stage::new(&config).play(does), *with, "with {key}");
    }
}

/// A key that is added to one of these sections needs a row.
#[test]
fn each_key_of_records_and_identity_has_a_row() {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/stack-config.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let keys = |form: &str| schema["$defs"][form]["properties"].as_object().unwrap().keys();
    let records = keys("RecordsConfig").map(|key| format!("records.{key}"));
    let identity = keys("IdentityConfig").map(|key| format!("identity.acme.{key}"));
    let known: BTreeSet<_> = records.chain(identity).collect();
    let shown: BTreeSet<_> = ROWS.iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(shown, known);
}

/// How long a record holds is said once, for those in memory and in stores.
#[test]
fn the_times_of_idempotency_hold_for_records() {
    let does = "pay:k again pay:k paid";
    assert_eq!(Stage::new(&json!({})).play(does), "charged charged 1");
    let short = json!({ "idempotency": { "done_ttl_ms": 1 } });
    assert_eq!(Stage::new(&short).play(does), "charged charged 2");
}

#[test]
fn the_command_line_stands_over_variables_and_these_over_the_file() {
    let mut stage = Stage::new(&json!({ "records": { "where": "@/file.db", "bodies": "digest" } }));
    stage.vars = vec![("TOOL_RELIABILITY__RECORDS__WHERE", stage.file("variable.db"))];
    assert_eq!(
        stage.play("pay:k pay:k file:variable.db file:file.db"),
        "charged ended there absent"
    );
    stage.options =
        ["--records", &stage.file("option.db"), "--record-bodies", "full"].map(Into::into).into();
    assert_eq!(stage.play("pay:k pay:k file:option.db"), "charged charged there");
}

#[test]
fn every_mistake_is_named_with_what_to_write() {
    let stage = Stage::new(&json!({
        "retry": { "attempts": 0 },
        "records": { "where": "postgres://u:secret@h/db", "key": "x" },
        "identity": { "acme": { "call": "progressToken" }, "other": { "strong": true } },
    }));
    let mut client = stage.open(false);
    assert_eq!(client.wait().code(), Some(1));
    let said = client.stderr();
    for part in [
        "guard.json cannot be used: ",
        "/retry/attempts: expected",
        "/records/where: expected a file, redis://HOST:PORT or memory, found an address postgres://…",
        "/records/key: expected a known key, found the unknown key \"key\"",
        "/identity/acme/call: expected the member with the client's id of a call, found \"progressToken\", which is not the same when a call comes again",
        "/identity/other: expected `call`, `conversation` or both",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("secret"), "{said}");
}

/// The first block of TOML below a heading of the guide.
fn example(heading: &str) -> &'static str {
    let guide = include_str!("../../../../../docs/mcp-reference.md");
    let below = guide.split_once(heading).expect(heading).1;
    let block = below.split_once("```toml\n").unwrap().1;
    block.split_once("```").unwrap().0
}

#[test]
fn the_guide_s_example_runs_and_the_records_are_found_by_it() {
    let mut stage = Stage::new(&json!({}));
    stage.config = "guard.toml";
    let config = stage.file(stage.config);
    fs::write(&config, example("## In the configuration")).unwrap();
    fs::create_dir(stage.folder.join(".config")).unwrap();
    fs::rename(stage.folder.join("key"), stage.folder.join(".config/records.key")).unwrap();
    let id = format!("call:{LONG}:c");
    let seen = stage.play(&format!("{id} again {id} paid file:.local/state/shop.db"));
    assert_eq!(seen, "charged charged 1 there");
    let mut records = Command::new(BIN);
    records.args(["records", "list", "--config", &config]).env("HOME", &stage.folder);
    let listed = String::from_utf8(records.output().unwrap().stdout).unwrap();
    assert!(listed.contains("done") && listed.contains(LONG), "{listed}");
}
