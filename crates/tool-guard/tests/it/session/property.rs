//! Whatever was done to a session, mending it makes it clean, and loses no file.
use super::folder::Folder;
use fastrand::Rng;
use serde_json::{Value, json};
use std::{collections::HashSet, fs};
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

/// The lines that a plan names.
fn named(plan: &Value) -> HashSet<u64> {
    let of = |all: &Value| all.as_array().cloned().unwrap_or_default();
    let all = [of(&plan["repairs"]), of(&plan["losses"])].concat();
    all.iter().filter_map(|one| one["line"].as_u64()).collect()
}

/// Mends `text` as a file, and checks that nothing is wrong then, and that nothing is lost. What is
/// not understood is left, and keeps the session from being judged.
fn mend(folder: &Folder, name: &str, text: &[u8]) -> i32 {
    let shown = String::from_utf8_lossy(text);
    folder.write(name, text);
    let was = folder.session(&["check", name]).code;
    let (mut plan, _) = folder.json(&["repair", name]);
    let mut done = folder.session(&["repair", "--write", name]);
    if done.code == 2 {
        // Much of it was torn.
        assert!(plan[0]["refused"].as_str().unwrap().contains("no whole record"), "{shown}");
        assert_eq!(fs::read(folder.path(name)).unwrap(), text);
        done = folder.session(&["repair", "--write", "--force", name]);
    }
    if done.out.contains("nothing was changed; to see the repair") {
        assert_eq!((done.code, fs::read(folder.path(name)).unwrap()), (3, text.into()), "{shown}");
        plan = folder.json(&["repair", "--force", name]).0;
        done = folder.session(&["repair", "--write", "--force", name]);
    }
    assert!(matches!(done.code, 0 | 3), "{shown}\n{}{}", done.out, done.err);
    let is_left = [
        "the repair would change message",
        "in an unknown form",
        "may be its result",
        "is uncertain",
    ];
    if is_left.iter().any(|why| done.out.contains(why)) {
        assert_eq!(std::fs::read(folder.path(name)).unwrap(), text, "{shown}");
        return was;
    }
    assert_eq!(folder.session(&["check", name]).code, done.code, "{shown}\n{}", done.out);
    let names = folder.names();
    let backup = names.iter().find(|other| other.starts_with(&format!("{name}.bak-")));
    let kept = folder.path(backup.map_or(name, String::as_str));
    assert!(fs::read(kept).unwrap() == text, "{shown}");
    if name.ends_with(".jsonl") {
        // Every line that is not named is there, as often as it was.
        let now = fs::read(folder.path(name)).unwrap();
        let mut now: Vec<_> = now.split(|byte| *byte == b'\n').collect();
        let named = named(&plan[0]);
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            if named.contains(&number) || line.trim_ascii().is_empty() {
                continue;
            }
            let at = now.iter().position(|now| *now == line);
            now.remove(at.unwrap_or_else(|| panic!("line {number} is lost\n{shown}")));
        }
    }
    let differs = folder.session(&["diff", name]);
    assert_eq!(differs.code, done.code, "{shown}\n{}", differs.out);
    assert!(!differs.out.contains("@@"), "{shown}\n{}", differs.out);
    let done = folder.session(&["repair", "--write", name]);
    assert!(done.out.contains("nothing to repair"), "{shown}\n{}", done.out);
    was
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
        mended += u64::from(mend(&folder, &format!("{seed}.json"), text.as_bytes()) == 1);
    }
    assert!(mended > 20, "only {mended} were corrupt");
}

/// A session of Claude Code's, of which each message is a line.
fn claude_code(messages: &[Value]) -> Vec<Vec<u8>> {
    let line = |(at, message): (usize, &Value)| {
        let parent = at.checked_sub(1).map(|parent| format!("u{parent}"));
        let role = &message["role"];
        let mut message = message.clone();
        if role == "assistant" {
            message["id"] = json!(format!("m{at}"));
        }
        let line = json!({
            "type": role, "uuid": format!("u{at}"), "parentUuid": parent, "sessionId": "s",
            "message": message,
        });
        format!("{line}\n").into_bytes()
    };
    messages.iter().enumerate().map(line).collect()
}

fn corrupt_lines(lines: &mut Vec<Vec<u8>>, random: &mut Rng) {
    let at = random.usize(0..lines.len());
    match random.u8(0..6) {
        0 if lines.len() > 1 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        // Torn, with the next record behind it; or only that.
        2 => lines[at].truncate(random.usize(1..40)),
        3 => drop(lines[at].pop()),
        4 => lines.insert(at, vec![0; random.usize(1..600)]),
        _ => lines[at].insert(20, 0xff),
    }
}

#[test]
fn lines_that_were_mended_are_clean() {
    let folder = Folder::new();
    let mut mended = 0;
    for seed in 0..rounds(60, 2_000) {
        let mut random = Rng::with_seed(seed);
        let mut messages = session(&mut random, false);
        if random.bool() {
            corrupt(&mut messages, &mut random);
        }
        // What is left has to be known as a session.
        messages.push(json!({"role": "user", "content": "and now?"}));
        let mut lines = claude_code(&messages);
        let last = lines.pop();
        for _ in 0..random.usize(0..3) {
            corrupt_lines(&mut lines, &mut random);
        }
        lines.extend(last);
        let name = format!("{seed}.jsonl");
        mended += u64::from(mend(&folder, &name, &lines.concat()) == 1);
    }
    assert!(mended > 20, "only {mended} were corrupt");
}
