//! A tool that has acted may fail with any words: they are no evidence that it did not run.
use super::client::Client;
use serde_json::{Value, json};
use std::fs;
use tr_core::classify;

/// Neither breaker nor loop guard keeps a call from its tool.
fn unhindered() -> Client {
    let config = crate::mcp::client::ledger().with_extension("toml");
    fs::write(&config, "[breaker]\nmode = \"disabled\"\n[loops]\nenabled = false\n").unwrap();
    let mut client = Client::guarded(&["--config", config.to_str().unwrap(), "--log", "off"]);
    client.list_tools();
    client
}

fn fails_with(code: i64, message: &str, order: &str) -> Value {
    json!({ "order": order, "then": "error", "code": code, "message": message })
}

fn keyed(client: &mut Client, id: usize, arguments: &Value) {
    let meta = json!({ "idempotencyKey": arguments["order"] });
    let params = json!({ "name": "charge_card", "arguments": arguments, "_meta": meta });
    client.request(id, "tools/call", params);
}

#[test]
fn a_receipt_mail_that_is_refused_is_not_paid_for_twice() {
    let mut client = unhindered();
    let codes = [-32603, -32000, -32001];
    let words =
        ["503", "429 Too Many Requests", "rate limit exceeded", "ENOTFOUND", "ECONNREFUSED"];
    let mut paid = 0;
    for (n, (code, text)) in
        codes.iter().flat_map(|code| words.map(|text| (*code, text))).enumerate()
    {
        let arguments = fails_with(code, &format!("mail: {text}"), &format!("o-{n}"));
        for id in [3 * n, 3 * n + 1, 3 * n + 2] {
            keyed(&mut client, id, &arguments);
            let answer = client.answer(id);
            let passes = id % 3 == 0;
            assert_eq!(answer["error"]["code"] == code, passes, "{answer}");
            assert!(!passes || answer.to_string().contains("[MAY HAVE RUN]"), "{answer}");
        }
        paid += 1;
        assert_eq!(client.executions("charge_card"), paid, "{code}: {text}");
    }
}

#[test]
fn no_words_in_an_answer_make_the_guard_repeat_a_payment() {
    const CODES: [i64; 11] =
        [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32042, -32099, 503];
    let mut client = unhindered();
    let words: Vec<String> = classify::tables().collect();
    assert!(words.len() > 1_000, "{} words", words.len());
    // Those of one round are in flight together.
    for (round, words) in words.chunks(100).enumerate() {
        let calls: Vec<Value> = words
            .iter()
            .enumerate()
            .map(|(n, text)| {
                fails_with(CODES[(round + n) % CODES.len()], text, &format!("o-{round}-{n}"))
            })
            .collect();
        for again in 0..2 {
            for (n, call) in calls.iter().enumerate() {
                keyed(&mut client, 200 * round + 100 * again + n, call);
            }
            for _ in &calls {
                client.receive();
            }
        }
    }
    assert_eq!(client.executions("charge_card"), words.len());
}

#[test]
fn twenty_calls_with_one_key_against_a_503_pay_once() {
    let mut client = unhindered();
    let call = fails_with(-32603, "HTTP 503: upstream connect error", "o-1");
    for id in 0..20 {
        keyed(&mut client, id, &call);
    }
    for _ in 0..20 {
        client.receive();
    }
    assert_eq!(client.executions("charge_card"), 1);
}

#[test]
fn a_client_that_obeys_retriable_pays_once() {
    for then in ["hang", "crash"] {
        let mut client = Client::guarded(&["--timeout", crate::mcp::client::HANGS]);
        client.list_tools();
        let answer = client.ask(1, "charge_card", json!({ "order": "o-1", "then": then }));
        let said = &answer["result"]["_meta"]["tool-reliability/error"];
        assert_eq!((&said["retriable"], &said["ran"]), (&json!(false), &json!("unknown")));
        let text = crate::mcp::client::text(&answer);
        assert!(text.contains("it may have run; do not repeat it; check first"), "{text}");
    }
}

#[test]
fn a_tool_says_itself_that_it_did_not_run() {
    // The server's own word, in the form in which a guard behind this one says it.
    let script = r#"
        n=0
        while read -r line; do
            n=$((n+1))
            id=$(printf %s "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/')
            echo run >> "$LEDGER"
            if [ $n -lt 3 ]; then
                printf '{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"busy: 503"}],"_meta":{"tool-reliability/error":{"code":"x","ran":"no","retriable":true}}}}\n' "$id"
            else
                printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id"
            fi
        done"#;
    let mut client = Client::script(&["--log", "off"], script);
    assert_eq!(client.ask(1, "pay", json!({}))["result"], json!({ "content": [] }));
}

/// Refuses a call the first time, as a guard behind this one does, and then makes it.
const REFUSES_ONCE: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/')
        echo run >> "$LEDGER"
        if [ $(($(wc -l < "$LEDGER") % 2)) = 1 ]; then
            printf '{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"not allowed"}],"_meta":{"tool-reliability/error":%s}}}\n' "$id" "$OWN_WORD"
        else
            printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id"
        fi
    done"#;

#[test]
fn a_call_that_the_server_says_did_not_run_is_made_by_the_next_equal_call() {
    let ids = [
        json!({}),
        json!({ "callId": "call_0" }),
        json!({ "idempotencyKey": "k" }),
        json!({ "callId": "call_yo7Iqrcw3F8mAZpJ5Vd0TkRe", "threadId": "t" }),
    ];
    for (own_word, answers) in
        [(r#"{"ran":"no","retriable":false}"#, [true, false]), (r#"{"ran":"no"}"#, [false, false])]
    {
        let script = format!("OWN_WORD='{own_word}'\n{REFUSES_ONCE}");
        for meta in &ids {
            let mut client = Client::script(&["--log", "off"], &script);
            let is_error = [1, 2].map(|id| {
                let params = json!({ "name": "pay", "arguments": { "order": 1 }, "_meta": meta });
                client.ask_for(id, "tools/call", params)["result"]["isError"] == true
            });
            assert_eq!(is_error, answers, "{own_word} {meta}");
            // After the word alone the first call is made again at once; without a strong id, the second one is another.
            let is_weak = *meta == json!({}) || *meta == json!({ "callId": "call_0" });
            let runs = if is_weak && !answers[0] { 4 } else { 2 };
            assert_eq!(client.executions("run"), runs, "{own_word} {meta}");
        }
    }
}
