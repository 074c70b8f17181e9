//! Ids on the wire.
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn bytes(value: &Value) -> Bytes {
    value.to_string().into()
}

fn sent(ids: &mut Ids, line: &Value, post: u64, scope: u64) -> Value {
    let (line, _) = ids.rewrite(&bytes(line), post, scope).unwrap();
    serde_json::from_slice(&line.unwrap()).unwrap()
}

fn heard(ids: &mut Ids, line: &Value) -> Vec<For> {
    let mut all = Vec::new();
    ids.sort(&bytes(line), |one| all.push(one));
    all
}

fn for_post(post: u64, line: &Value, answers: bool) -> For {
    For::Post { post, line: bytes(line), answers }
}

#[test]
fn two_clients_with_one_id_get_each_their_own_answer_and_progress() {
    let mut ids = Ids::default();
    let call =
        json!({ "id": 7, "method": "tools/call", "params": { "_meta": { "progressToken": 7 } } });
    let (a, b) = (sent(&mut ids, &call, 1, 1), sent(&mut ids, &call, 2, 2));
    assert_ne!(a["id"], b["id"]);
    for (wire, post) in [(b, 2), (a, 1)] {
        let token = &wire["params"]["_meta"]["progressToken"];
        let progress = |token: &Value| json!({ "method": "notifications/progress", "params": { "progress": 1, "progressToken": token } });
        assert_eq!(
            heard(&mut ids, &progress(token)),
            [for_post(post, &progress(&json!(7)), false)]
        );
        let answer = |id: &Value| json!({ "id": id, "result": {} });
        assert_eq!(
            heard(&mut ids, &answer(&wire["id"])),
            [for_post(post, &answer(&json!(7)), true)]
        );
        assert_eq!(heard(&mut ids, &answer(&wire["id"])), [For::Nobody], "answered twice");
        assert_eq!(heard(&mut ids, &progress(token)), [For::Nobody], "late");
    }
}

#[test]
fn a_client_cancels_only_what_it_asked_for_itself() {
    let mut ids = Ids::default();
    let ask = json!({ "id": "x", "method": "a" });
    let theirs = sent(&mut ids, &ask, 1, 1);
    let cancel =
        |id: &Value| json!({ "method": "notifications/cancelled", "params": { "requestId": id } });
    for other in [json!("x"), theirs["id"].clone()] {
        assert_eq!(ids.rewrite(&bytes(&cancel(&other)), 2, 2), Ok((None, 0)));
    }
    let mine = sent(&mut ids, &cancel(&json!("x")), 3, 1);
    assert_eq!(mine["params"]["requestId"], theirs["id"]);
}

#[test]
fn a_cancellation_of_the_server_s_names_its_own_request_or_a_subscription() {
    let mut ids = Ids::default();
    let listen = sent(&mut ids, &json!({ "id": "l", "method": "subscriptions/listen" }), 4, 0);
    let ask = json!({ "id": 9, "method": "sampling/createMessage" });
    assert_eq!(heard(&mut ids, &ask), [For::Client { line: bytes(&ask), asks: true }]);
    assert!(!ids.asked.is_empty());
    let cancel =
        |id: &Value| json!({ "method": "notifications/cancelled", "params": { "requestId": id } });
    let own = cancel(&json!(9));
    assert_eq!(heard(&mut ids, &own), [For::Client { line: bytes(&own), asks: false }]);
    assert!(ids.asked.is_empty());
    let note = |id: &Value| json!({ "method": "notifications/tools/list_changed", "params": { "_meta": { "io.modelcontextprotocol/subscriptionId": id } } });
    assert_eq!(heard(&mut ids, &note(&listen["id"])), [for_post(4, &note(&json!("l")), false)]);
    assert_eq!(heard(&mut ids, &cancel(&listen["id"])), [for_post(4, &cancel(&json!("l")), true)]);
    assert_eq!(heard(&mut ids, &cancel(&listen["id"])), [For::Nobody]);
}

#[test]
fn the_end_of_a_subscription_names_it_as_its_client_does() {
    let mut ids = Ids::default();
    let listen = sent(&mut ids, &json!({ "id": "l", "method": "subscriptions/listen" }), 4, 0);
    let end = |id: &Value| json!({ "id": id, "result": { "_meta": { "io.modelcontextprotocol/subscriptionId": id } } });
    assert_eq!(heard(&mut ids, &end(&listen["id"])), [for_post(4, &end(&json!("l")), true)]);
}

#[test]
fn the_members_of_batches_go_each_its_own_way() {
    let mut ids = Ids::default();
    let batch =
        bytes(&json!([{ "id": 1, "method": "a" }, { "method": "n" }, { "id": 2, "method": "b" }]));
    let (line, requests) = ids.rewrite(&batch, 5, 0).unwrap();
    let wire: Value = serde_json::from_slice(&line.unwrap()).unwrap();
    assert_eq!(requests, 2);
    let answers = json!([{ "id": wire[2]["id"], "result": 2 }, { "method": "m" }, 7, { "id": wire[0]["id"], "result": 1 }]);
    let line = |value: Value| bytes(&value);
    assert_eq!(
        heard(&mut ids, &answers),
        [
            for_post(5, &json!({ "id": 2, "result": 2 }), true),
            For::Client { line: line(json!({ "method": "m" })), asks: false },
            for_post(5, &json!({ "id": 1, "result": 1 }), true),
        ]
    );
}

#[test]
fn an_answer_that_is_no_json_is_given_back_under_the_client_s_id() {
    let mut ids = Ids::default();
    let wire = sent(&mut ids, &json!({ "id": "x", "method": "a" }), 1, 0);
    let line = |id: &str| Bytes::from(format!("{{\"id\":{id},\"result\":{{\"x\":NaN}}}}"));
    let mut all = Vec::new();
    ids.sort(&line(&wire["id"].to_string()), |one| all.push(one));
    assert_eq!(all, [For::Post { post: 1, line: line("\"x\""), answers: true }]);
    for noise in [&b"Listening on stdio"[..], b"{\"id\":1,\"resu", b"", b"[", b"\xff\xfe"] {
        ids.sort(&Bytes::from_static(noise), |one| assert_eq!(one, For::Nobody));
    }
}

#[test]
fn what_could_be_read_two_ways_is_not_sent_and_opens_nothing() {
    let mut ids = Ids::default();
    for (line, why) in [
        (r#"{"id":1,"id":2,"method":"a"}"#, Refused::Unreadable),
        (r#"{"id":1,"method":"a""#, Refused::Unreadable),
        (r#"{"id":null,"method":"a"}"#, Refused::Id),
        (r#"[{"id":1,"method":"a"},{"id":{},"method":"b"}]"#, Refused::Id),
        (
            r#"{"id":1,"method":"a","params":{"_meta":{},"_meta":{"progressToken":3}}}"#,
            Refused::Params,
        ),
        (
            r#"{"id":1,"method":"a","params":{"_meta":{"progressToken":1,"progressToken":3}}}"#,
            Refused::Params,
        ),
    ] {
        assert_eq!(ids.rewrite(&Bytes::from_static(line.as_bytes()), 1, 0), Err(why), "{line}");
    }
    assert!(ids.of(1).is_empty());
}

#[test]
fn no_more_requests_are_open_than_the_most() {
    let mut ids = Ids::default();
    let ask = bytes(&json!({ "id": 1, "method": "a" }));
    for post in 0..MAX_OPEN as u64 {
        ids.rewrite(&ask, post, post).unwrap();
    }
    assert_eq!(ids.rewrite(&ask, 0, 0), Err(Refused::TooMany));
    ids.forget(ids.of(3)[0]);
    ids.rewrite(&ask, 0, 0).unwrap();
}

#[test]
fn an_oversized_line_is_for_who_waits_for_it() {
    let mut ids = Ids::default();
    let wire = sent(&mut ids, &json!({ "id": "x", "method": "a" }), 6, 0);
    let line =
        |id: &str, asks| Oversized { bytes: 9, id: Some(id.into()), asks, is_no_success: false };
    assert_eq!(ids.oversized(line("\"q\"", true)), For::Server(line("\"q\"", true)));
    let own = wire["id"].to_string();
    assert_eq!(ids.oversized(line(&own, false)), For::Oversized(6, line("\"x\"", false)));
    assert_eq!(ids.oversized(line(&own, false)), For::Nobody);
}

#[test]
fn the_server_gets_one_line_however_the_client_wrote_it() {
    let mut ids = Ids::default();
    let pretty = Bytes::from_static(b"{\r\n \"id\": \"x\\ny\",\n\"method\": \"a\" }\n");
    let (line, _) = ids.rewrite(&pretty, 1, 0).unwrap();
    assert_eq!(line.unwrap(), "{   \"id\": 1, \"method\": \"a\" }\n");
}

proptest! {
    /// Whatever ids and tokens clients choose, each gets its own back, and every other byte is the same.
    #[test]
    fn every_answer_finds_its_request(
        asks in prop::collection::vec((any::<i32>(), ".{0,8}", any::<bool>(), any::<bool>()), 1..20),
        order in any::<prop::sample::Index>(),
    ) {
        let mut ids = Ids::default();
        let mut open = Vec::new();
        for (post, (number, text, is_number, spaced)) in asks.into_iter().enumerate() {
            let id = if is_number { json!(number) } else { json!(text) };
            let space = if spaced { " \t" } else { "" };
            let write = |id: &str, token: &str| format!("{{{space}\"params\":{{\"x\":[{id}],\"_meta\":{{\"progressToken\":{space}{token}}}}},\"id\":{id}{space},\"method\":\"a\"}}");
            let own = id.to_string();
            let line = Bytes::from(write(&own, &own));
            let (line, requests) = ids.rewrite(&line, post as u64, 0).unwrap();
            prop_assert_eq!(requests, 1);
            let line = line.unwrap();
            let wire: Value = serde_json::from_slice(&line).unwrap();
            let wire = wire["id"].to_string();
            let expected = write(&own, &wire).replace(&format!("\"id\":{own}"), &format!("\"id\":{wire}"));
            prop_assert_eq!(&line[..line.len() - 1], expected.as_bytes());
            open.push((post as u64, own, wire));
        }
        let numbers: HashSet<_> = open.iter().map(|(_, _, wire)| wire.clone()).collect();
        prop_assert_eq!(numbers.len(), open.len());
        let middle = order.index(open.len());
        open.rotate_left(middle);
        for (post, own, wire) in open {
            let answer = |id: &str| Bytes::from(format!("{{\"result\":{{\"id\":{wire}}}, \"id\": {id} }}"));
            let mut all = Vec::new();
            ids.sort(&answer(&wire), |one| all.push(one));
            prop_assert_eq!(all, [For::Post { post, line: answer(&own), answers: true }]);
        }
    }

    #[test]
    fn no_line_of_the_server_s_is_fatal(line: Vec<u8>, post in 0..3_u64) {
        let mut ids = Ids::default();
        let ask = json!({ "id": post, "method": "a" });
        ids.rewrite(&bytes(&ask), post, 0).unwrap();
        ids.sort(&line.into(), |_| {});
    }
}
