//! Two sessions with the same lines: where they may differ, and where they must not.
use crate::{
    peer::{GUARDED, Server, Way},
    session::{Session, Step},
};
use serde_json::{Value, json};
use std::{
    panic::resume_unwind,
    thread::{self, ScopedJoinHandle},
};

/// What says that words are the guard's.
pub(crate) const MARK: &str = "tool-reliability/guard";

/// Runs `script` directly and in every mode of the guard, and compares what came.
pub(crate) fn in_every_mode(server: &Server, script: fn(Session) -> Vec<Step>) {
    thread::scope(|scope| {
        let run = |way| scope.spawn(move || script(Session::start(server, way)));
        let guarded = GUARDED.map(|way| (way, run(way)));
        let direct = join(run(Way::Direct));
        for (way, guarded) in guarded {
            assert_same(way, &direct, &join(guarded));
        }
    });
}

/// What a thread returns; it panics as the thread does.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Fails unless both sessions had the same lines in the same order. Where the guard acts, a
/// failing answer may have notes of its.
pub(crate) fn assert_same(way: Way, direct: &[Step], guarded: &[Step]) {
    assert_eq!(direct.len(), guarded.len());
    for (direct, guarded) in direct.iter().zip(guarded) {
        let same = direct.received.len() == guarded.received.len()
            && direct.received.iter().zip(&guarded.received).all(|(direct, guarded)| {
                direct == guarded
                    || way == Way::Enforce && adds_notes(&read(direct), &read(guarded))
            });
        assert!(
            same,
            "{way:?}, after {}\ndirectly:\n{}through the guard:\n{}",
            direct.sent,
            direct.received.concat(),
            guarded.received.concat()
        );
    }
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// Whether `guarded` is the failing answer `direct`, and more text after its own.
pub(crate) fn adds_notes(direct: &Value, guarded: &Value) -> bool {
    let [mut direct, mut guarded] = [direct, guarded].map(Value::clone);
    if direct["result"]["isError"] == true {
        let [own, all] =
            [&mut direct, &mut guarded].map(|answer| answer["result"]["content"].take());
        let (Some(own), Some(all)) = (own.as_array(), all.as_array()) else { return false };
        return direct == guarded
            && all.len() > own.len()
            && all.starts_with(own)
            && all[own.len()..]
                .iter()
                .all(|block| block["type"] == "text" && block["_meta"][MARK] == true);
    }
    let [own, all] = [&mut direct, &mut guarded].map(|answer| match answer.get_mut("error") {
        Some(error) => error["message"].take(),
        None => Value::Null,
    });
    let (Some(own), Some(all)) = (own.as_str(), all.as_str()) else { return false };
    if let Some(meta) = guarded.pointer("/error/data/_meta") {
        direct["error"]["data"]["_meta"][MARK] = meta[MARK].clone();
    }
    direct == guarded && all.strip_prefix(own).is_some_and(|more| more.starts_with('\n'))
}

#[test]
fn only_notes_on_failures_are_let_pass() {
    let failed = json!({ "id": 1, "result": { "content": [{ "type": "text", "text": "no" }], "isError": true } });
    let mut noted = failed.clone();
    noted["result"]["content"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "type": "text", "text": "[N]", "_meta": { MARK: true } }));
    let changed = |answer: &Value, place: &str, to: Value| {
        let mut answer = answer.clone();
        *answer.pointer_mut(place).unwrap() = to;
        answer
    };
    assert!(adds_notes(&failed, &noted));
    for (place, to) in [
        ("/id", json!(2)),
        ("/result/content/0/text", json!("other")),
        ("/result/content/1/type", json!("image")),
        ("/result/content/1/_meta", json!(null)),
        ("/result/isError", json!(false)),
    ] {
        assert!(!adds_notes(&failed, &changed(&noted, place, to)), "{place}");
    }
    let [well, well_noted] =
        [&failed, &noted].map(|answer| changed(answer, "/result/isError", json!(false)));
    assert!(!adds_notes(&well, &well_noted));

    let error = json!({ "id": 1, "error": { "code": -1, "message": "no", "data": [1] } });
    let message = |text: &str| changed(&error, "/error/message", json!(text));
    assert!(adds_notes(&error, &message("no\n[N]")));
    let plain = json!({ "error": { "code": -1, "message": "no" } });
    let marked = json!({
        "error": { "code": -1, "message": "no\n[N]", "data": { "_meta": { MARK: ["[N]"] } } },
    });
    assert!(adds_notes(&plain, &marked));
    assert!(!adds_notes(&error, &message("nothing")));
    assert!(!adds_notes(&error, &changed(&message("no\n[N]"), "/error/data", json!(null))));
    assert!(!adds_notes(&error, &well));
}
