//! What a client sees behind the guard, beside what it sees without it.
use mcp_clients::play::Seen;
use serde_json::{Value, json};

/// What says that words are the guard's.
const MARK: &str = "tool-reliability/guard";

/// What servers make afresh in each run: the server, and the members whose values are times.
const TIMES: [(&str, &[&str]); 3] =
    [("mongodb", &["createdAt", "lastUsedAt"]), ("postgres", &["now"]), ("time", &["datetime"])];

/// `playwright` names a file after the time.
const FILES: (&str, &str) = ("playwright", "- [Snapshot](");

/// How a run behind the guard compares.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Steps that differ: what was seen directly and behind the guard.
    pub(crate) differing: Vec<String>,
    /// Successes with a note of the guard's, which says that calls repeat.
    pub(crate) noted: usize,
    /// Failures with one.
    pub(crate) warned: usize,
}

/// Compares what was seen in all steps.
pub(crate) fn compare(server: &str, direct: &Seen, guarded: &Seen, ways: [&str; 2]) -> Compared {
    let [direct, guarded] =
        [(direct, ways[0]), (guarded, ways[1])].map(|(seen, name)| seen.on(name));
    let mut compared = Compared::default();
    let steps = |seen: &[(&str, &Value)]| -> Vec<String> {
        seen.iter().map(|(step, _)| (*step).to_owned()).collect()
    };
    if steps(&direct) != steps(&guarded) {
        compared.differing.push(format!("steps: {:?}, {:?}", steps(&direct), steps(&guarded)));
        return compared;
    }
    for ((step, direct), (_, guarded)) in direct.iter().zip(&guarded) {
        let (own, notes) = without_notes(guarded);
        if settled(server, direct) != settled(server, &own) {
            compared.differing.push(format!("{step}: {direct} {guarded}"));
        } else if notes && (own["content"].is_null() || own["isError"] == true) {
            compared.warned += 1;
        } else if notes {
            compared.noted += 1;
        }
    }
    compared
}

/// An answer without the notes that the guard adds, and whether it had any.
fn without_notes(seen: &Value) -> (Value, bool) {
    let mut own = seen.clone();
    let failed = own["isError"] == true;
    if let Some(blocks) = own.get_mut("content").and_then(Value::as_array_mut) {
        while blocks.last().is_some_and(|block| is_note(block, failed)) {
            blocks.pop();
        }
    } else if let Some(error) = own.as_object_mut().and_then(|all| all.values_mut().next()) {
        without_note_of_error(error);
    }
    let notes = own != *seen;
    (own, notes)
}

/// A success is only told that calls repeat.
fn is_note(block: &Value, failed: bool) -> bool {
    let text = block["text"].as_str().unwrap_or_default();
    block["_meta"] == json!({ MARK: true }) && (failed || text.starts_with("[LOOP WARNING] "))
}

/// The notes on an error of the protocol are behind its message, and in its data.
fn without_note_of_error(error: &mut Value) {
    let Some(notes) = error.pointer("/data/_meta").and_then(|meta| meta.get(MARK)) else { return };
    let notes: Vec<_> = notes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let notes = format!("\n{}", notes.join("\n"));
    let message = error["message"].as_str().unwrap_or_default();
    let Some(message) = message.strip_suffix(&notes).map(str::to_owned) else { return };
    error["message"] = message.into();
    if error["data"] == json!({ "_meta": error["data"]["_meta"] })
        && error["data"]["_meta"].as_object().is_some_and(|meta| meta.len() == 1)
    {
        error.as_object_mut().expect("has members").remove("data");
    }
}

/// An answer without what the server makes afresh each time.
fn settled(server: &str, seen: &Value) -> Value {
    let keys = TIMES.iter().find(|(name, _)| *name == server).map_or(&[][..], |(_, keys)| keys);
    let mut seen = seen.clone();
    settle(&mut seen, keys, server == FILES.0);
    seen
}

fn settle(value: &mut Value, times: &[&str], files: bool) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|it| settle(it, times, files)),
        Value::Object(all) => {
            for (key, value) in all {
                match value.as_str() {
                    Some(time) if times.contains(&key.as_str()) && is_time(time) => {
                        *value = "a time".into();
                    }
                    _ => settle(value, times, files),
                }
            }
        }
        // Also in JSON that is a text.
        Value::String(text) if !times.is_empty() => {
            let Ok(mut inner) = serde_json::from_str::<Value>(text) else { return };
            if inner.is_object() || inner.is_array() {
                settle(&mut inner, times, files);
                *text = inner.to_string();
            }
        }
        Value::String(text) if files => {
            let line = |line: &str| {
                let file = line.strip_prefix(FILES.1).and_then(|rest| rest.strip_suffix(".yml)"));
                // As `page-2026-11-24T16-50-01-123Z`.
                let time = file.and_then(|file| file.rsplit_once("page-"));
                match time {
                    Some((folder, time)) if is_time(time) => format!("{}{folder}", FILES.1),
                    _ => line.to_owned(),
                }
            };
            *text = text.lines().map(line).collect::<Vec<_>>().join("\n");
        }
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    let mark = |(place, mark): (usize, u8)| text.as_bytes().get(place) == Some(&mark);
    text.len() >= 19 && [(4, b'-'), (7, b'-'), (10, b'T')].into_iter().all(mark)
}

#[test]
fn only_notes_and_times_are_left_out() {
    let differ = |server: &str, direct: &Value, guarded: &Value| {
        let [direct, guarded] = [direct, guarded].map(|answer| {
            let mut seen = Seen::default();
            seen.note("way", "0 call", answer.clone());
            seen
        });
        !compare(server, &direct, &guarded, ["way"; 2]).differing.is_empty()
    };
    let note = |text: &str| json!({ "type": "text", "text": text, "_meta": { MARK: true } });
    let answer = |failed: bool, blocks: &[Value]| json!({ "isError": failed, "content": blocks });
    let own = json!({ "type": "text", "text": "no" });
    for (failed, text, differs) in [
        (false, "[LOOP WARNING] x", false),
        (false, "[LOOP DETECTED] x", true),
        (true, "[NON-RETRYABLE] x", false),
    ] {
        let direct = answer(failed, std::slice::from_ref(&own));
        let noted = answer(failed, &[own.clone(), note(text)]);
        assert_eq!(differ("git", &direct, &noted), differs, "{text}");
        assert!(differ("git", &direct, &answer(failed, &[note(text), own.clone()])), "{text}");
    }
    let error = |message: &str, data: &Value| json!({ "McpError": { "code": 1, "message": message, "data": data } });
    let direct = json!({ "McpError": { "code": 1, "message": "no" } });
    let meta = json!({ "_meta": { MARK: ["[N]"] } });
    assert!(!differ("git", &direct, &error("no\n[N]", &meta)));
    assert!(differ("git", &direct, &error("no\n[M]", &meta)));
    assert!(differ(
        "git",
        &direct,
        &error("no\n[N]", &json!({ "_meta": { MARK: ["[N]"] }, "a": 1 }))
    ));
    let time =
        |time: &str| answer(false, &[json!({ "text": json!({ "datetime": time }).to_string() })]);
    let [early, late] = ["2026-11-24T16:50:01Z", "2026-11-24T16:50:02Z"].map(time);
    assert!(!differ("time", &early, &late));
    assert!(differ("git", &early, &late) && differ("time", &early, &time("late")));
    let file = |time: &str| {
        answer(false, &[json!({ "text": format!("a\n- [Snapshot](out/page-{time}.yml)") })])
    };
    let [early, late] = ["2026-11-24T16-50-01-123Z", "2026-11-24T16-50-02-123Z"].map(file);
    assert!(!differ("playwright", &early, &late));
    assert!(differ("git", &early, &late) && differ("playwright", &early, &file("x")));
}
