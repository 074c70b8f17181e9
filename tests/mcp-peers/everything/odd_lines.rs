//! Lines as no library writes them: odd spelling, odd ids, no JSON at all.
use super::with_hello;
use crate::{
    compare,
    peer::{Server, Way},
    session::{Session, answers},
};
use serde_json::{Value, json};

#[test]
fn odd_lines_are_taken_as_the_server_takes_them() {
    compare::in_every_mode(&Server::everything(), |session| with_hello(session, script));
}

/// A call that names no tool goes no further: some servers read `Name` as `name`, and would run it
/// past every rule. The server refuses it too, in words of its own.
#[test]
fn a_call_without_a_name_is_refused_on_both_sides() {
    const NAMELESS: &[&[u8]] = &[
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#,
        br#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#,
    ];
    let refusals = |way| {
        let steps = with_hello(Session::start(&Server::everything(), way), |session| {
            for (line, id) in NAMELESS.iter().zip(1..) {
                let line = [line, b"\n".as_slice()].concat();
                session.step(&line, |message| answers(message, &json!(id)));
            }
        });
        let answers = steps.iter().flat_map(|step| &step.received);
        answers
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|answer| answer["error"].is_object())
            .map(|answer| (answer["id"].clone(), answer["error"]["code"].clone()))
            .collect::<Vec<_>>()
    };
    let both = |code: i32| vec![(json!(1), json!(code)), (json!(2), json!(code))];
    assert_eq!(refusals(Way::Direct), both(-32603));
    assert_eq!(refusals(Way::Enforce), both(-32602));
}

/// Lines with an answer, and its id.
const ANSWERED: &[(&[u8], &str)] = &[
    (b"{ \"id\" : 101 , \"method\":\t\"ping\",\"jsonrpc\":\"2.0\" }\r\n", "101"),
    (br#"{"params":{"arguments":{"message":"order"},"name":"echo"},"method":"tools/call","id":"\u0061","jsonrpc":"2.0"}"#, r#""a""#),
    (br#"{"jsonrpc":"2.0","id":102.0,"method":"tools\/call","params":{"name":"e\u0063ho","arguments":{"message":"x","more":"\ud83d"}}}"#, "102"),
    (br#"{"jsonrpc":"2.0","id":-3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"\u00e9\/"}}}"#, "-3"),
    (br#"{"jsonrpc":"2.0","id":1e3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"x"}}}"#, "1000"),
    (br#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"echo","arguments":{"message":"x","extra":{"deep":[[[[]]]]}}}}"#, "0"),
    (br#"{"jsonrpc":"2.0","id":"","method":"tools/call","params":{"name":"echo","arguments":{"message":"x"},"_meta":{"trace":"kept"},"more":1}}"#, r#""""#),
    (br#"{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}"#, "9007199254740991"),
    (br#"{"jsonrpc":"2.0","id":103,"method":"p\u0069ng"}"#, "103"),
    (br#"{"jsonrpc":"2.0","id":104,"method":"ping","params":{"x":"\ud83d"}}"#, "104"),
    (b"{\"jsonrpc\":\"2.0\",\"id\":105,\"method\":\"ping\",\"params\":{\"x\":\"\xff\"}}", "105"),
    (br#"{"jsonrpc":"2.0","id":108,"method":"tools/call","params":{"name":"get-tiny-image"}}"#, "108"),
];

/// Lines that nothing answers.
const UNANSWERED: &[&[u8]] = &[
    b"",
    b"   ",
    b"{nonsense",
    b"null",
    b"\"tools\"",
    b"\xff\xfe",
    br#"{"jsonrpc":"1.0","id":201,"method":"ping"}"#,
    br#"{"jsonrpc":"2.0","id":202,"method":"ping","method":"ping","id":{}}"#,
    br#"[{"jsonrpc":"2.0","id":203,"method":"ping"},{"jsonrpc":"2.0","id":204,"method":"tools/list"}]"#,
    br#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"message":"x"}}}"#,
    br#"{"jsonrpc":"2.0","method":"notifications/no/such/thing","params":{}}"#,
    br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    br#"{"jsonrpc":"2.0","id":77,"result":{"nobody":"asked"}}"#,
    br#"{"jsonrpc":"2.0","id":78,"error":{"code":1,"message":"nobody asked"}}"#,
];

fn script(session: &mut Session) {
    for (line, id) in ANSWERED {
        let id: Value = serde_json::from_str(id).unwrap();
        let line =
            [line.trim_ascii_end(), if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" }].concat();
        session.step(&line, |message| answers(message, &id));
    }
    for line in UNANSWERED {
        session.aside(line);
    }
    // Many at once, more than a pipe holds.
    let calls = (0..200).map(|n| {
        let params = json!({ "name": "echo", "arguments": { "message": format!("{n} {}", "é".repeat(4 * n)) } });
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": format!("m{n}"), "method": "tools/call", "params": params }))
    });
    session.step(calls.collect::<String>().as_bytes(), |message| answers(message, &json!("m199")));
}
