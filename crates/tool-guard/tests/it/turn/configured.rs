//! `--config`: each of its sections acts in a turn, or the guide says that it does not.
use super::{Folder, count, text};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, process::Command};

/// A key; a value of it; what the configuration says beside it; the calls of the plan; what is seen
/// without the key; and with it. `@` is the row's folder.
type Row = [&'static str; 6];

const DOWN: &str = r#"{"tool": "exchange_rate", "params": {"pair": "p"}}"#;
const PAY: &str =
    r#"{"tool": "charge_card", "params": {"order": "o-1"}, "idempotency_key": "secret-key"}"#;
const RETRIES: &str = r#"{"retry": {"base_ms": 1}}"#;
const ONCE: &str = r#"{"retry": {"attempts": 1}}"#;

const ROWS: &[Row] = &[
    ["retry.attempts", "2", RETRIES, DOWN, "3 ran=5", "3 ran=2"],
    ["retry_opt_in.agents", r#"["other"]"#, RETRIES, DOWN, "3 ran=5", "3 ran=1"],
    [
        "breaker.consecutive",
        "1",
        ONCE,
        r#"{"name": "a", "tool": "exchange_rate", "default_value": 1}, {"name": "b", "tool": "exchange_rate", "depends_on": ["a"]}"#,
        "3 ran=2",
        "3 ran=1",
    ],
    [
        "attempt_timeout_ms",
        "50",
        ONCE,
        r#"{"tool": "slow", "params": {"ms": 400}}"#,
        "0 ran=0",
        "3 ran=0",
    ],
    ["idempotency.done_ttl_ms", "1", "{}", PAY, "0 ran=1 again=1", "0 ran=1 again=2"],
    ["rollout.mode", r#""off""#, RETRIES, DOWN, "3 ran=5", "3 ran=1"],
    ["preset", r#""tool_reliability""#, RETRIES, DOWN, "3 ran=5", "3 ran=4"],
    [
        "tools.charge_card.classification",
        r#"{"-32001": "not_run"}"#,
        RETRIES,
        r#"{"tool": "charge_card", "params": {"order": "o-1", "then": "error"}}"#,
        "4 ran=1",
        "3 ran=5",
    ],
    [
        "tools.exchange_rate.classification",
        r#"{"503": "permanent"}"#,
        RETRIES,
        DOWN,
        "3 ran=5",
        "3 ran=1",
    ],
    ["tools.exchange_rate.required", "true", ONCE, DOWN, "3 ran=1", "4 ran=1"],
    [
        "defaults.required",
        "true",
        r#"{"retry": {"attempts": 1}, "tools": {"exchange_rate": {}}}"#,
        DOWN,
        "3 ran=1",
        "4 ran=1",
    ],
    [
        "normalise",
        "false",
        r#"{"retry": {"base_ms": 1}, "tools": {"exchange_rate": {"classification": {"service_unavailable": "permanent"}}}}"#,
        DOWN,
        "3 ran=1",
        "3 ran=5",
    ],
    ["records.where", "\"@/own.db\"", "{}", PAY, "0 ran=1 own=absent", "0 ran=1 own=there"],
    ["records.bodies", "\"digest\"", "{}", PAY, "0 ran=1 again=1 exit=0", "0 ran=1 again=1 exit=4"],
    ["records.key_file", "\"@/key\"", "{}", PAY, "0 ran=1 secret=1", "0 ran=1 secret=0"],
    ["records.name", "\"shop\"", "{}", PAY, "0 ran=1 other=2", "0 ran=1 other=1"],
];

/// A server that says nothing of its one tool, which is down.
const SILENT: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\),.*/\1/')
        case "$line" in
            *initialize\"*) result='{}' ;;
            *tools/list*) result='{"tools":[{"name":"flaky"}]}' ;;
            *tools/call*)
                echo ran >> "$0"
                result='{"isError":true,"content":[{"type":"text","text":"Service unavailable (503)"}]}' ;;
            *) continue ;;
        esac
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    done
"#;

/// Seen by a test of its own: the demonstration's server says something of each tool.
const BY_ITSELF: &str = "undeclared_effect";

/// Sections that do nothing in a turn. The guide says of each why.
const WITHOUT_EFFECT: [&str; 8] = [
    "loops",
    "identity",
    "deadline_ms",
    "idle_timeout_ms",
    "sessions",
    "silent_failures",
    "telemetry",
    "upstream",
];

impl Folder {
    /// A turn by a configuration, by what the plan's calls are and what is looked for then.
    fn by(&self, config: &Value, calls: &str, sought: &str) -> String {
        let key = self.file("key", &"ab".repeat(32));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let config = config.to_string().replace("@/", &format!("{}/", self.0.display()));
        let config = self.file("stack.json", &config);
        let plan = format!(r#"{{"agent": "planner", "calls": [{calls}]}}"#);
        let options = ["--config", config.to_str().unwrap()];
        let ran = || fs::read_to_string(self.ledger()).unwrap_or_default().lines().count();
        let play = || self.command(&plan, &options).output().unwrap().status.code().unwrap();
        let mut seen = vec![play().to_string(), format!("ran={}", ran())];
        for word in sought.split(' ').skip(2) {
            let what = word.split_once('=').unwrap().0;
            seen.push(match what {
                "again" => {
                    let code = play();
                    seen.extend([format!("again={}", ran()), format!("exit={code}")]);
                    continue;
                }
                "exit" => continue,
                "own" => {
                    let is_there = self.0.join("own.db").exists();
                    format!("own={}", if is_there { "there" } else { "absent" })
                }
                "secret" => {
                    let file = self.0.join("state/tool-guard/records.db");
                    let wal = fs::read(file.with_extension("db-wal")).unwrap_or_default();
                    let bytes = [fs::read(file).unwrap(), wal].concat();
                    let holds = bytes.windows(10).any(|part| part == b"secret-key");
                    format!("secret={}", u8::from(holds))
                }
                "other" => {
                    // The same server by another command.
                    let mut turn = self.command(&plan, &options);
                    turn.env("LANG", "C");
                    let args: Vec<_> = turn.get_args().map(ToOwned::to_owned).collect();
                    let at = args.iter().position(|arg| arg == "--").unwrap() + 1;
                    let mut other = Command::new(turn.get_program());
                    other.env("XDG_STATE_HOME", self.0.join("state"));
                    other.args(&args[..at]).arg("env").args(&args[at..]);
                    assert_eq!(other.output().unwrap().status.code(), Some(0));
                    format!("other={}", ran())
                }
                other => panic!("what is {other}?"),
            });
        }
        let wanted = sought.split(' ').count();
        seen.truncate(wanted);
        seen.join(" ")
    }
}

fn put(config: &mut Value, path: &str, value: Value) {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let section = section.split('.').filter(|name| !name.is_empty());
    let section = section.fold(config, |at, name| {
        at.as_object_mut().unwrap().entry(name).or_insert_with(|| json!({}))
    });
    section[key] = value;
}

#[test]
fn each_section_of_a_configuration_acts() {
    let mut wrong = Vec::new();
    for [key, value, beside, calls, without, with] in ROWS {
        let mut config: Value = serde_json::from_str(beside).unwrap();
        for (wanted, value) in [(without, None), (with, Some(value))] {
            if let Some(value) = value {
                put(&mut config, key, serde_json::from_str(value).unwrap());
            }
            let folder = Folder::new(&format!("configured-{key}-{}", value.is_some()));
            let seen = folder.by(&config, calls, wanted);
            if seen != *wanted {
                wrong.push(format!("{config}\n  saw    {seen}\n  wanted {wanted}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// A section that is added needs a row, or a word in the guide.
#[test]
fn each_section_has_a_row_or_a_word_in_the_guide() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let schema = fs::read_to_string(format!("{root}/schemas/stack-config.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let known = schema["properties"].as_object().unwrap().keys().map(String::as_str);
    let known: BTreeSet<_> = known.filter(|key| *key != "$schema").collect();
    let shown = ROWS.iter().map(|row| row[0].split('.').next().unwrap());
    let shown: BTreeSet<_> = shown.chain(WITHOUT_EFFECT).chain([BY_ITSELF]).collect();
    assert_eq!(shown, known);
    let guide = fs::read_to_string(format!("{root}/docs/turn.md")).unwrap();
    let section = guide.split_once("### Configuration").unwrap().1.split("\n#").next().unwrap();
    for name in WITHOUT_EFFECT {
        assert!(section.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn an_undeclared_effect_holds_for_tools_of_which_nobody_says_it() {
    let folder = Folder::new("configured-undeclared");
    let plan = folder.file("plan.json", r#"{"calls": [{"tool": "flaky"}]}"#);
    let ledger = folder.ledger();
    for (undeclared, ran) in [(json!("mutating"), 1), (json!("read_only"), 5)] {
        let config = json!({ "retry": { "base_ms": 1 }, "undeclared_effect": undeclared });
        let config = folder.file("stack.json", &config.to_string());
        let before = count(&ledger, "ran");
        let mut turn = Command::new(env!("CARGO_BIN_EXE_tool-guard"));
        turn.arg("turn").arg(&plan).arg("--config").arg(config).args(["--", "sh", "-c", SILENT]);
        turn.arg(&ledger).output().unwrap();
        assert_eq!(count(&ledger, "ran") - before, ran, "{undeclared}");
    }
}

#[test]
fn variables_stand_over_the_file_and_options_over_both() {
    let folder = Folder::new("configured-over");
    let config = folder.file("stack.toml", "[retry]\nattempts = 3\nbase_ms = 1");
    let catalog = folder.file("tools.toml", "[tools.exchange_rate]\nretry = { attempts = 4 }");
    let plan = format!(r#"{{"calls": [{DOWN}]}}"#);
    let (config, catalog) = (config.to_str().unwrap(), catalog.to_str().unwrap());
    let ran = |options: &[&str], variable: Option<&str>| {
        let mut turn = folder.command(&plan, options);
        turn.envs(variable.map(|value| ("TOOL_RELIABILITY__RETRY__ATTEMPTS", value)));
        let before = count(&folder.ledger(), "exchange_rate p");
        let output = turn.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        count(&folder.ledger(), "exchange_rate p") - before
    };
    assert_eq!(ran(&["--config", config], None), 3);
    assert_eq!(ran(&["--config", config], Some("2")), 2);
    assert_eq!(ran(&[], Some("2")), 2);
    assert_eq!(ran(&["--config", config, "--catalog", catalog], Some("2")), 4);
}

#[test]
fn a_configuration_that_cannot_be_used_starts_nothing() {
    let folder = Folder::new("configured-faults");
    let started = folder.0.join("started");
    let plan = folder.file("plan.json", r#"{"calls": [{"tool": "echo"}]}"#);
    for (config, said) in [
        (r#"{"retry": {"atempts": 2}}"#, r#"found the unknown key "atempts""#),
        (r#"{"retry": {"attempts": 0}}"#, "stack.json cannot be used: "),
        (
            r#"{"records": {"where": "postgres://h/db"}}"#,
            "/records/where: expected a file, redis://HOST:PORT or memory",
        ),
    ] {
        let config = folder.file("stack.json", config);
        let mut turn = Command::new(env!("CARGO_BIN_EXE_tool-guard"));
        turn.arg("turn").arg(&plan).arg("--config").arg(config).args(["--", "touch"]).arg(&started);
        let output = turn.output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(said), "{said}: {stderr}");
        assert!(!started.exists(), "not even the server");
    }
}

/// What passes by the records could run a second time in a run whose calls are to run once.
#[test]
fn a_run_with_a_name_is_refused_where_calls_pass_by_the_records() {
    let folder = Folder::new("configured-rollout");
    for rollout in [json!({ "mode": "off" }), json!({ "tools": { "charge_card": "shadow" } })] {
        let config = folder.file("stack.json", &json!({ "rollout": rollout }).to_string());
        let options = ["--config", config.to_str().unwrap(), "--run", "r-1"];
        let plan = format!(r#"{{"calls": [{PAY}]}}"#);
        let output = folder.command(&plan, &options).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--run must record every call"), "{said}");
        assert_eq!(count(&folder.ledger(), "charge_card o-1"), 0);
    }
}

/// A server that reads and never answers ends the turn, with what to do.
#[test]
fn a_server_that_never_answers_ends_the_turn() {
    let folder = Folder::new("silent");
    let plan = folder.file("plan.json", r#"{ "calls": [{ "name": "a", "tool": "read" }] }"#);
    let mut turn = Command::new(env!("CARGO_BIN_EXE_tool-guard"));
    let output = turn.arg("turn").arg(plan).args(["--", "tail", "-f", "/dev/null"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("has not answered initialize within 25s, and no call was made"),
        "{said}"
    );
}
