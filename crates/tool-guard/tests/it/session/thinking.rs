//! A repair in front of the model's thoughts says that the provider may not take these any more.
use super::folder::Folder;
use serde_json::{Value, json};

const WHAT: &str = "Anthropic may drop it, or refuse the request";

fn thought(text: &str) -> Value {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s2"});
    json!({"role": "assistant", "content": [thinking, {"type": "text", "text": text}]})
}

fn call(id: &str) -> Value {
    let thinking = json!({"type": "thinking", "thinking": "pay", "signature": "s1"});
    let call = json!({"type": "tool_use", "id": id, "name": "pay", "input": {}});
    json!({"role": "assistant", "content": [thinking, call]})
}

#[test]
fn a_repair_in_front_of_a_thought_says_what_may_become_of_it() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "paid"});
    let answered = json!({"role": "user", "content": [result]});
    let behind = [user("go"), call("toolu_1"), user("well?"), thought("so")];
    let before = [user("go"), call("toolu_1"), answered, user("an"), thought("so"), user("x")];
    let folder = Folder::new();
    let lines =
        |messages: &[Value]| messages.iter().map(|it| format!("{it}\n")).collect::<String>();
    let claude = |messages: &[Value]| {
        let line = |(at, message): (usize, &Value)| {
            let parent = at.checked_sub(1).map(|at| format!("u{at}"));
            json!({"type": message["role"], "uuid": format!("u{at}"), "parentUuid": parent,
                "sessionId": "s", "message": message})
        };
        lines(&messages.iter().enumerate().map(line).collect::<Vec<_>>())
    };
    let whole = format!("[\n{}\n]", behind.clone().map(|it| it.to_string()).join(",\n"));
    for (name, text, line) in
        [("a.json", whole, 5), ("a.jsonl", lines(&behind), 4), ("c.jsonl", claude(&behind), 4)]
    {
        folder.write(name, text);
        let done = folder.session(&["repair", name]);
        assert!(done.out.contains(WHAT), "{}", done.out);
        assert!(done.out.contains("`redacted_thinking` blocks in the latest"), "{}", done.out);
        let told = folder.json(&["repair", name]).0;
        // Not the call's own: what changes comes behind it.
        assert_eq!(told[0]["thinking"]["line"], line, "{}", told[0]);
    }
    // Nothing is said of thoughts before what changes, nor where nothing does.
    let mut late = before.to_vec();
    late.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "?"}]}));
    for messages in [&before[..], &late] {
        folder.write("b.jsonl", lines(messages));
        let done = folder.session(&["repair", "b.jsonl"]);
        assert!(!done.out.contains(WHAT), "{}", done.out);
    }
}
