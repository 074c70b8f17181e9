//! Whatever comes from either side, the guard goes on.
use super::client::{Client, text};
use serde_json::json;

#[test]
fn unreadable_lines_that_could_call_a_tool_are_refused() {
    let mut client = Client::guarded(&[]);
    for line in [
        &br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"charge_card","arguments":{"order":"x"}}}"#[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}",
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call""#,
    ] {
        client.send_raw(line);
        client.send_raw(b"\n");
        let answer = client.receive();
        // Its id can be made out all the same.
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32700)));
    }
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\n");
    assert_eq!(client.receive()["id"], json!(null));
    assert!(client.is_quiet());
    assert_eq!(client.executions("charge_card"), 0);
}

#[test]
fn unreadable_lines_of_other_kinds_go_to_the_server() {
    for line in [&b"{nonsense\n"[..], b"\xff\xfe\n", b"\n", b"[1,2\n"] {
        let mut direct = Client::direct();
        let mut guarded = Client::guarded(&[]);
        for client in [&mut direct, &mut guarded] {
            client.send_raw(line);
        }
        assert_eq!(direct.line(), guarded.line());
        assert!(guarded.is_quiet());
    }
}

/// Answers by the order of the call: `NaN`, a mark of byte order, a raw control character, two ids.
const ODD: &str = r#"
    n=0; while read -r line; do
        echo "$line" >>"$LEDGER"; n=$((n+1))
        case $n in
            1) printf '{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":NaN,"y":-Infinity}}\n' ;;
            2) printf '\357\273\277{"jsonrpc":"2.0","id":2,"result":{"content":[]}}\n' ;;
            3) printf '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"a\001b"}]}}\n' ;;
            4) printf '{"jsonrpc":"2.0","id":1,"result":{"content":[]},"id":4}\n' ;;
        esac
    done"#;

/// Whatever a client makes of such a line, it is the call's answer: no timeout follows it, and what
/// it answers is not run again.
#[test]
fn an_answer_that_is_no_json_settles_its_call_and_passes_once() {
    let mut client = Client::script(&["--timeout", "1500ms"], ODD);
    let pay = |client: &mut Client, id: u32, key: u32| {
        let meta = json!({ "idempotencyKey": key.to_string() });
        let params = json!({ "name": "pay", "arguments": { "order": key }, "_meta": meta });
        client.request(id, "tools/call", params);
    };
    let expected: [&[u8]; 4] = [
        br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":NaN,"y":-Infinity}}"#,
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[]}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\x01b\"}]}}",
        br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]},"id":4}"#,
    ];
    for (key, line) in (1..).zip(expected) {
        pay(&mut client, key, key);
        assert_eq!(client.line().trim_ascii_end(), line);
    }
    for key in 1..=4 {
        let id = 10 + key;
        pay(&mut client, id, key);
        let said = text(&client.answer(id));
        assert!(said.contains("has ended, and its answer was not kept"), "{said}");
    }
    assert_eq!(client.executions(""), 4);
    // What nobody answers is given up last of all: after that nothing can follow for the others.
    client.request(20, "tools/call", json!({ "name": "slow" }));
    let last = client.receive();
    assert_eq!(last["id"], 20);
    assert!(text(&last).contains("Tool timeout after 1.5s"), "{last}");
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"method\":\"ping\",\"x\":NaN}\n");
    assert_eq!(client.receive()["id"], "a");
}

#[test]
fn a_batch_with_a_tool_call_is_refused() {
    let mut client = Client::guarded(&[]);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "charge_card", "arguments": { "order": "x" } } });
    client.send(&json!([{ "jsonrpc": "2.0", "id": 2, "method": "ping" }, call]));
    let answers = client.receive();
    for (place, id) in [2, 1].into_iter().enumerate() {
        assert_eq!(answers[place]["id"], id);
        assert_eq!(answers[place]["error"]["code"], -32600);
    }
    assert!(client.is_quiet());
    assert_eq!(client.executions("charge_card"), 0);
}

#[test]
fn an_oversized_line_is_refused_by_its_id() {
    let mut client = Client::guarded(&["--max-line", "2000"]);
    client.call("big", "echo", json!({ "text": "x".repeat(5000) }));
    let answer = client.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("big"), &json!(-32600)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("--max-line"));
    assert!(client.is_quiet());
}

#[test]
fn an_oversized_answer_is_said_to_be_one() {
    let script = r#"read call
        head -c 5000 /dev/zero | tr '\0' x | sed 's/^/{"result":"/; s/$/","id":1}/'; echo
        exec cat >/dev/null"#;
    let mut client = Client::script(&["--max-line", "2000"], script);
    let answer = client.ask(1, "any", json!({}));
    assert!(text(&answer).contains("The tool ran, but its answer has 5"), "{answer}");
}

#[test]
fn params_that_can_be_read_two_ways_are_refused() {
    let mut client = Client::guarded(&[]);
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"name\":\"charge_card\",\"arguments\":{\"order\":\"x\"}}}\n");
    assert_eq!(client.answer(1)["error"]["code"], -32602);
    client.request(2, "tools/call", json!({ "name": "echo", "_meta": { "idempotencyKey": 7 } }));
    assert!(client.answer(2)["error"]["message"].as_str().unwrap().contains("must be a string"));
    assert_eq!(client.executions("charge_card"), 0);
}

#[test]
fn a_call_without_an_id_is_dropped() {
    let mut client = Client::guarded(&[]);
    client.send(&json!({ "jsonrpc": "2.0", "method": "tools/call",
        "params": { "name": "charge_card", "arguments": { "order": "x" } } }));
    assert!(client.is_quiet());
    assert_eq!(client.executions("charge_card"), 0);
}

#[test]
fn an_id_in_use_is_refused() {
    let mut client = Client::guarded(&[]);
    client.call(1, "slow", json!({ "ms": 300 }));
    client.call(1, "echo", json!({ "text": "x" }));
    assert_eq!(client.receive()["error"]["code"], -32600);
    assert_eq!(text(&client.receive()), "done");
}

#[test]
fn answers_and_requests_of_the_servers_own_pass() {
    // The server asks under an id that the client's call uses too, and answers what nobody asked.
    let script = r#"read call
        echo '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}'
        echo '{"jsonrpc":"2.0","id":99,"result":{}}'
        read answer
        echo "$answer" >>"$LEDGER"
        echo '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"sampled"}]}}'
        exec cat >/dev/null"#;
    let mut client = Client::script(&[], script);
    client.call(1, "any", json!({}));
    assert_eq!(client.receive()["method"], "sampling/createMessage");
    assert_eq!(client.receive()["id"], 99);
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "role": "assistant" } }));
    assert_eq!(text(&client.answer(1)), "sampled");
    assert_eq!(client.executions("{\"id\":1") + client.executions("{\"jsonrpc\""), 1);
}
