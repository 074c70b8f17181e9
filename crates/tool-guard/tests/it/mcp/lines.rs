//! What passes, passes byte for byte and in order.
use super::client::Client;
use serde_json::json;

const SESSION: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{ "id" : 1, "method":"tools/list","jsonrpc":"2.0", "params":{} }"#,
    r#"{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"echo","arguments":{"text":"späß 🦀 \u00e9"}}}"#,
    r#"{"jsonrpc":"2.0","id":3.0,"method":"tools/call","params":{"name":"no such tool","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"no/such/method"}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"charge_card","arguments":{"order":"a"}}}"#,
    r#"{nonsense"#,
    r#"{"jsonrpc":"2.0","id":77,"result":{"nobody":"asked"}}"#,
];

/// Each request is answered before the next is sent, so that the order is the same every time.
fn transcript(mut client: Client) -> Vec<String> {
    let mut answers = Vec::new();
    for (n, line) in SESSION.iter().enumerate() {
        client.send_raw(line.as_bytes());
        client.send_raw(b"\n");
        if !matches!(n, 1 | 9) {
            answers.push(String::from_utf8(client.line()).unwrap());
        }
    }
    assert!(client.is_quiet());
    answers
}

#[test]
fn every_mode_answers_as_the_server_does() {
    let direct = transcript(Client::direct());
    for mode in ["off", "observe", "shadow", "enforce"] {
        assert_eq!(transcript(Client::guarded(&["--mode", mode])), direct, "{mode}");
    }
}

#[test]
fn lines_stay_in_order_around_a_call() {
    let mut client = Client::guarded(&[]);
    let mut all = String::new();
    for n in 0..200 {
        let method = if n % 2 == 0 { "tools/call" } else { "ping" };
        let params = json!({ "name": "echo", "arguments": { "text": "x" } });
        all += &format!(
            "{}\n",
            json!({ "jsonrpc": "2.0", "id": n, "method": method, "params": params })
        );
    }
    client.send_raw(all.as_bytes());
    // The demonstration's server answers pings at once, and each call in a task of its own that
    // is ready at once: what the guard must keep is the order among each kind.
    let ids: Vec<i64> = (0..200).map(|_| client.receive()["id"].as_i64().unwrap()).collect();
    for kind in 0..2 {
        let of_kind: Vec<i64> = ids.iter().copied().filter(|id| id % 2 == kind).collect();
        assert!(of_kind.is_sorted(), "{of_kind:?}");
    }
}

#[test]
fn what_was_sent_before_the_input_ended_is_answered() {
    let mut client = Client::guarded(&[]);
    assert_eq!(client.ask_for(1, "ping", json!({}))["result"], json!({}));
    assert!(client.leave().success());
}

#[test]
fn an_id_stays_as_the_server_writes_it() {
    let script = r#"read call
        echo '{"id":1,"result":{"content":[]},"jsonrpc":"2.0"}'
        exec cat >/dev/null"#;
    let mut client = Client::script(&[], script);
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"tools/call\",\"params\":{\"name\":\"any\"}}\n");
    assert_eq!(client.line(), b"{\"id\":1,\"result\":{\"content\":[]},\"jsonrpc\":\"2.0\"}\n");
}

#[test]
fn arguments_without_a_canonical_form_pass() {
    let script = r#"read -r call
        printf '%s\n' "$call" >>"$LEDGER"
        echo '{"id":1,"result":{"content":[]},"jsonrpc":"2.0"}'
        exec cat >/dev/null"#;
    let mut client = Client::script(&[], script);
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any","arguments":{"x":"\ud83d"}}}"#;
    client.send_raw(call);
    client.send_raw(b"\n");
    assert_eq!(client.answer(1)["result"]["content"], json!([]));
    assert_eq!(client.executions(std::str::from_utf8(call).unwrap()), 1);
}

#[test]
fn a_client_that_reads_no_logs_is_served() {
    let mut client = Client::guarded(&["--log", "info"]);
    // Each call is logged; all of it is more than a pipe holds.
    for id in 0..500 {
        client.ask(id, "echo", json!({ "text": "x" }));
    }
    assert!(client.leave().success());
}

/// One write, where the client made one: each costs the server a wake-up.
#[test]
fn lines_that_come_together_leave_together() {
    let script = r#"
        lines=$(dd bs=65536 count=1 2>/dev/null | wc -l)
        echo '{"jsonrpc":"2.0","method":"notifications/lines","params":{"n":'$lines'}}'
        cat >/dev/null"#;
    let mut client = Client::script(&[], script);
    let lines: String = (0..20)
        .map(|id| match id % 2 {
            0 => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"),
            _ => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"a\"}}}}\n"),
        })
        .collect();
    client.send_raw(lines.as_bytes());
    assert_eq!(client.receive()["params"]["n"], 20);
}
