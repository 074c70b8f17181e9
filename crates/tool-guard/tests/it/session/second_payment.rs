//! Two payments, of which something was lost: a receipt is never taken for a copy of another, nor is
//! an outcome said to be unknown that the file tells.
use super::folder::Folder;

/// Mends a text, and gives back what is said and what came of it.
fn mended(name: &str, text: &str) -> (String, String) {
    let folder = Folder::new();
    folder.write(name, text);
    let done = folder.ends(0, &["repair", "--write", name]);
    (done.out, folder.read(name))
}

/// The call for the second order is lost, and its receipt says what the first says.
#[test]
fn the_second_receipt_stays() {
    let gemini = r#"{"contents":[
{"role":"user","parts":[{"text":"pay order 1, then order 2"}]},
{"role":"model","parts":[{"functionCall":{"name":"pay","args":{"order":1}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"pay","response":{"status":"paid up"}}}]},
{"role":"model","parts":[{"text":"now order 2"}]},
{"role":"user","parts":[{"functionResponse":{"name":"pay","response":{"status":"paid up"}}}]},
{"role":"model","parts":[{"text":"done"}]}]}"#;
    let chat = |id: &str, between: &str| {
        format!(
            r#"[{{"role":"user","content":"pay 1, then 2"}},
{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"pay","arguments":"{{\"order\":1}}"}}}}]}},
{{"role":"tool","tool_call_id":"{id}","content":"paid up"}},
{between}{{"role":"tool","tool_call_id":"{id}","content":"paid up"}},
{{"role":"assistant","content":"done"}}]"#
        )
    };
    let speaks = "{\"role\":\"assistant\",\"content\":\"now 2\"},\n";
    let texts = [
        gemini.to_owned(),
        chat("call_0", speaks),
        chat("functions.pay:0", speaks),
        chat("call_a7Bq3xYz9Kd0", speaks),
    ];
    for text in texts {
        let (said, now) = mended("s.json", &text);
        assert_eq!(now.matches("paid up").count(), 2, "{said}{now}");
        assert!(said.contains("lost: which call this belongs to"), "{said}");
        assert!(!said.contains("nothing that a tool did or answered is lost"), "{said}");
    }
    // OpenAI accepts two beside one another: what is clean is not changed.
    for id in ["functions.pay:0", "call_a7Bq3xYz9Kd0"] {
        let (said, now) = mended("s.json", &chat(id, ""));
        assert_eq!(now.matches("paid up").count(), 2, "{said}{now}");
        assert!(said.contains("nothing to repair"), "{said}");
    }
}

/// Of two equal calls one was answered: neither is said to be the one.
#[test]
fn a_receipt_of_one_of_two_calls_is_given_to_neither() {
    let (said, now) = mended(
        "s.json",
        r#"{"contents":[
{"role":"user","parts":[{"text":"pay orders 1 and 2"}]},
{"role":"model","parts":[{"functionCall":{"name":"pay","args":{"order":1}}},{"functionCall":{"name":"pay","args":{"order":2}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"pay","response":{"receipt":"for order 2"}}}]},
{"role":"model","parts":[{"text":"hm"}]}]}"#,
    );
    assert_eq!(now.matches("outcome unknown, may have run").count(), 2, "{now}");
    assert!(now.contains("for order 2"), "{now}");
    assert!(said.contains("lost: which call this belongs to"), "{said}");
}

/// What the rollout's event says of the call is there for all to read.
#[test]
fn no_outcome_is_unknown_that_another_line_tells() {
    let line = |kind: &str, payload: &str| {
        format!("{{\"timestamp\":\"t\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let says = |text: &str| {
        let item = format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
        );
        line("response_item", &item)
    };
    let call = r#"{"type":"function_call","name":"pay","arguments":"{}","call_id":"call_1"}"#;
    let end = r#"{"type":"mcp_tool_call_end","call_id":"call_1","result":{"Ok":{"content":[{"type":"text","text":"paid up"}]}}}"#;
    let text = [
        line(
            "session_meta",
            r#"{"id":"s","timestamp":"t","cwd":"/x","originator":"codex_cli_rs"}"#,
        ),
        says("go"),
        line("response_item", call),
        line("event_msg", end),
        says("well?"),
    ]
    .concat();
    let folder = Folder::with("s.jsonl", &text);
    for flags in [&["repair"][..], &["repair", "--write"], &["repair", "--write", "--force"]] {
        let done = folder.session(&[flags, &["s.jsonl"]].concat());
        assert_eq!(done.code, 3, "{}{}", done.out, done.err);
        let why = "line 4 mentions the call call_1, which has no result, in an unknown form";
        assert!(done.out.contains(why), "{}", done.out);
        assert_eq!(folder.read("s.jsonl"), text);
    }
}
