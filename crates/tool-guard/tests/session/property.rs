//! Whatever was done to a session, mending it makes it clean, and loses no file.
use crate::folder::Folder;
use fastrand::Rng;
use serde_json::{Value, json};
use tr_testkit::rounds;

/// A valid session in Anthropic's form, or in OpenAI's.
fn session(random: &mut Rng, is_openai: bool) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for step in 0..random.usize(1..5) {
        let ids: Vec<_> = (0..random.usize(0..4)).map(|n| format!("call_{step}_{n}")).collect();
        if ids.is_empty() {
            messages.push(json!({"role": "assistant", "content": "done"}));
        } else if is_openai {
            let call = |id: &String| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
            let calls: Vec<_> = ids.iter().map(call).collect();
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
            let result = |id| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
            messages.extend(ids.iter().map(result));
        } else {
            let call = |id| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
            let result = |id| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
            let calls: Vec<_> = ids.iter().map(call).collect();
            messages.push(json!({"role": "assistant", "content": calls}));
            let results: Vec<_> = ids.iter().map(result).collect();
            messages.push(json!({"role": "user", "content": results}));
        }
        messages.push(json!({"role": "user", "content": "more"}));
    }
    messages
}

fn corrupt(messages: &mut Vec<Value>, random: &mut Rng) {
    let at = random.usize(0..messages.len());
    let other = random.usize(0..messages.len());
    match random.u8(0..6) {
        0 if messages.len() > 1 => drop(messages.remove(at)),
        1 => messages.insert(other, messages[at].clone()),
        2 => messages.swap(at, other),
        3 => messages.truncate(at + 1),
        4 => messages.insert(at, json!({"role": "user", "content": " "})),
        _ => {
            let Some(blocks) = messages[at]["content"].as_array_mut() else { return };
            if blocks.len() > 1 {
                blocks.remove(random.usize(0..blocks.len()));
            }
        }
    }
}

#[test]
fn what_was_mended_is_clean() {
    let folder = Folder::new();
    let mut mended = 0;
    for seed in 0..rounds(60, 2_000) {
        let mut random = Rng::with_seed(seed);
        let is_openai = random.bool();
        let mut messages = session(&mut random, is_openai);
        for _ in 0..random.usize(1..4) {
            corrupt(&mut messages, &mut random);
        }
        let text = json!({"model": "m", "messages": messages}).to_string();
        let name = format!("{seed}.json");
        folder.write(&name, &text);
        let was = folder.session(&["check", &name]).code;
        let done = folder.session(&["repair", "--write", &name]);
        assert_eq!(done.code, 0, "{text}\n{}{}", done.out, done.err);
        let done = folder.session(&["check", &name]);
        assert_eq!(done.code, 0, "{text}\n{}", done.out);
        let backups = folder.names();
        let backup = backups.iter().find(|other| other.starts_with(&format!("{name}.bak-")));
        match backup {
            Some(backup) => assert_eq!(folder.read(backup), text),
            None => assert_eq!(folder.read(&name), text),
        }
        mended += u64::from(was == 1);
    }
    assert!(mended > 20, "only {mended} were corrupt");
}
