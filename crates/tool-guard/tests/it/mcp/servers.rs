//! What twelve servers answered to healthy calls, replayed: through the guard it is the same.
//!
//! `tests/data/servers/` has their raw lines, each request before its answer: polls, keys pressed
//! again and again, reads in turns, reads whose answers change, and many failures in a row of
//! servers that cannot reach their services. The tools' lists hold names and annotations only.
use super::client::Client;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

/// What says that words are the guard's.
const MARK: &str = "tool-reliability/guard";

/// Answers from a record. A retry gets the answer of its call once more, under its id.
const SERVER: &str = r#"
    while IFS= read -r line; do
        case "$line" in
            *'"method":"notifications/cancelled"'*) ;;
            *'"id":"tool-guard-'*)
                id=$(printf %s "$line" | sed 's/.*"id":\("tool-guard-[^"]*"\).*/\1/')
                printf '%s\n' "$answer" | sed "s/\"jsonrpc\":\"2.0\",\"id\":[0-9]*/\"jsonrpc\":\"2.0\",\"id\":$id/" ;;
            *)
                IFS= read -r request <&3; IFS= read -r answer <&3
                [ "$line" = "$request" ] || echo "mismatch $line" >>"$LEDGER"
                printf '%s\n' "$answer" ;;
        esac
    done"#;

/// What became of the lines of a server.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    lines: usize,
    /// Successes that carry a note.
    remarked: usize,
    /// Failures that do.
    warned: usize,
}

fn replay(record: &Path, options: &[&str]) -> Seen {
    let script = format!("exec 3<'{}'\n{SERVER}", record.display());
    let mut client = Client::script(options, &script);
    let text = fs::read_to_string(record).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut seen = Seen::default();
    for pair in lines.chunks(2) {
        let [request, direct] = pair else { panic!("a request without an answer") };
        client.send_raw(format!("{request}\n").as_bytes());
        let guarded = String::from_utf8(client.line()).unwrap();
        seen.lines += 1;
        if guarded.trim_end() == *direct {
            continue;
        }
        let [direct, guarded]: [Value; 2] =
            [direct, guarded.trim_end()].map(|line| serde_json::from_str(line).unwrap());
        let failed = direct["error"].is_object() || direct["result"]["isError"] == true;
        assert!(
            adds_notes(&direct, &guarded, failed),
            "{}: {request}\ndirectly {direct}\nguarded {guarded}",
            record.display()
        );
        *if failed { &mut seen.warned } else { &mut seen.remarked } += 1;
    }
    assert_eq!(client.executions("mismatch"), 0, "the server was asked something else");
    // The list of tools is none of the calls.
    seen.lines -= 1;
    seen
}

/// Whether `guarded` is the answer `direct` with notes behind it, and nothing else.
fn adds_notes(direct: &Value, guarded: &Value, failed: bool) -> bool {
    let is_note = |text: &str| {
        let of_failures = [
            "[TOOL ERRORS] ",
            "[NON-RETRYABLE]",
            "[LOOP DETECTED] ",
            "[MAY HAVE RUN] ",
            "[CHECK FIRST] ",
        ];
        text.starts_with("[LOOP WARNING] ")
            || failed && of_failures.iter().any(|note| text.starts_with(note))
    };
    let [mut direct, mut guarded] = [direct, guarded].map(Value::clone);
    if direct["error"].is_object() {
        let [own, all] = [&mut direct, &mut guarded].map(|it| it["error"]["message"].take());
        let (Some(own), Some(all)) = (own.as_str(), all.as_str()) else { return false };
        let notes = all.strip_prefix(own).and_then(|rest| rest.strip_prefix('\n'));
        let marked = guarded.pointer("/error/data/_meta").map(|meta| meta[MARK].clone());
        let marked = marked.unwrap_or_default();
        let all: Vec<_> = marked.as_array().into_iter().flatten().flat_map(Value::as_str).collect();
        if notes != Some(all.join("\n").as_str()) {
            return false;
        }
        let are_notes = all.iter().all(|note| is_note(note));
        direct["error"]["data"]["_meta"][MARK] = marked;
        return direct == guarded && are_notes;
    }
    let [own, all] = [&mut direct, &mut guarded].map(|it| it["result"]["content"].take());
    let (Some(own), Some(all)) = (own.as_array(), all.as_array()) else { return false };
    direct == guarded
        && all.starts_with(own)
        && all[own.len()..].iter().all(|block| {
            block["_meta"] == json!({ MARK: true }) && block["text"].as_str().is_some_and(is_note)
        })
}

/// Before the guard told known turns from unknown ones it refused 6 of these 186 calls.
#[test]
fn healthy_calls_to_twelve_servers_are_answered_as_without_the_guard() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/servers");
    let mut records: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    records.sort();
    assert_eq!(records.len(), 12);
    let mut all = Seen::default();
    let seen = thread::scope(|scope| {
        let replays = records.iter().map(|record| {
            // Whoever wants no notes has none on successes.
            let silent = scope.spawn(|| replay(record, &["--loops", "off"]));
            let seen = scope.spawn(|| replay(record, &[]));
            (record, seen, silent)
        });
        let replays: Vec<_> = replays.collect();
        let join = |(record, seen, silent): (_, thread::ScopedJoinHandle<'_, Seen>, _)| {
            let silent: thread::ScopedJoinHandle<'_, Seen> = silent;
            (record, seen.join().unwrap(), silent.join().unwrap())
        };
        replays.into_iter().map(join).collect::<Vec<_>>()
    });
    for (record, seen, silent) in seen {
        let record: &PathBuf = record;
        println!("{:24} {seen:?}", record.file_stem().unwrap().display());
        all.lines += seen.lines;
        all.remarked += seen.remarked;
        all.warned += seen.warned;
        assert_eq!(silent.remarked, 0, "{}", record.display());
    }
    println!("{all:?}");
    assert!(all.lines >= 160);
    assert!(all.remarked <= 14, "a remark is an exception: {all:?}");
}

#[test]
fn only_notes_behind_the_answer_are_let_pass() {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let direct = read(r#"{"id":1,"result":{"content":[{"type":"text","text":"a"}]}}"#);
    let noted = |note: &str| {
        let mut noted = direct.clone();
        let block = json!({ "type": "text", "text": note, "_meta": { MARK: true } });
        noted["result"]["content"].as_array_mut().unwrap().push(block);
        noted
    };
    assert!(adds_notes(&direct, &noted("[LOOP WARNING] x"), false));
    assert!(!adds_notes(&direct, &noted("[LOOP DETECTED] x"), false));
    assert!(!adds_notes(&direct, &noted("b"), true));
    let mut other = noted("[LOOP WARNING] x");
    other["result"]["content"][0]["text"] = "b".into();
    assert!(!adds_notes(&direct, &other, false));
    let mut unmarked = noted("[LOOP WARNING] x");
    unmarked["result"]["content"][1]["_meta"].take();
    assert!(!adds_notes(&direct, &unmarked, false));
}
