//! What posts hear.
mod said;

use super::{said::MAX_KEPT, *};
use crate::wire::{
    jsonrpc::{self, Line},
    lines::{Item, Oversized},
};
use hyper::StatusCode;
use serde_json::{Value, json};

fn message_of(line: Bytes, is_mutating: bool) -> Message {
    Message { line, is_mutating, presence: Presence::default() }
}

fn posted(posts: &mut Posts, line: &Value, is_mutating: bool) -> u64 {
    posts.post(&message_of(line.to_string().into(), is_mutating))
}

/// The lines for the server, which are then written.
fn written(posts: &mut Posts) -> Vec<Value> {
    let lines = std::mem::take(&mut posts.to_server);
    posts.wrote(lines.len());
    lines[..]
        .split(|it| *it == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn says(posts: &mut Posts, line: &Value) {
    posts.on_server(Item::Line(format!("{line}\n").into()));
}

/// What a post has heard: lines, the text of a failure, or `end`.
fn heard(posts: &mut Posts, number: u64) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match posts.next(number, Waker::noop()) {
            Some(Some(ServerEvent::Message { line, .. })) => {
                all.push(String::from_utf8(line.to_vec()).unwrap());
            }
            Some(Some(ServerEvent::Failed(failure))) => {
                all.push(format!("{:?}: {failure}", failure.ran()));
            }
            Some(Some(ServerEvent::Refused(response))) => {
                assert_eq!(response.status(), StatusCode::BAD_REQUEST);
                all.push("refused".into());
            }
            Some(Some(ServerEvent::Oversized(line))) => {
                all.push(format!("{} bytes for {:?}", line.bytes, line.id));
            }
            Some(Some(other)) => panic!("{other:?}"),
            Some(None) => {
                all.push("end".into());
                return all;
            }
            None => return all,
        }
    }
}

fn ask(id: u64) -> Value {
    json!({ "id": id, "method": "tools/call" })
}

fn note() -> Value {
    json!({ "method": "notifications/message" })
}

fn cancel(id: u64) -> Value {
    json!({ "method": "notifications/cancelled", "params": { "requestId": id } })
}

#[test]
fn a_post_ends_after_its_answer_and_a_notification_at_once() {
    let mut posts = Posts::new(Sharing::Session);
    let notes = posted(&mut posts, &json!({ "method": "notifications/initialized" }), false);
    assert_eq!(heard(&mut posts, notes), ["end"]);
    let call = posted(&mut posts, &ask(9), false);
    assert_eq!(heard(&mut posts, call), [""; 0]);
    let wire = written(&mut posts).remove(1);
    says(&mut posts, &json!({ "id": wire["id"], "result": 1 }));
    assert_eq!(heard(&mut posts, call), [r#"{"id":9,"result":1}"#, "end"]);
}

#[test]
fn what_is_said_unasked_goes_to_one_stream_or_waits_for_one() {
    let mut posts = Posts::new(Sharing::Session);
    let note = note();
    says(&mut posts, &note);
    let call = posted(&mut posts, &ask(1), false);
    assert_eq!(heard(&mut posts, call), [note.to_string()], "kept until then");
    says(&mut posts, &note);
    assert_eq!(heard(&mut posts, call), [note.to_string()], "no other stream is open");
    let get = posts.listen();
    says(&mut posts, &note);
    assert_eq!(heard(&mut posts, get), [note.to_string()]);
    let question = json!({ "id": 0, "method": "sampling/createMessage" });
    says(&mut posts, &question);
    assert_eq!(heard(&mut posts, call), [question.to_string()], "most likely the call asks it");
    posted(&mut posts, &ask(2), false);
    says(&mut posts, &question);
    assert_eq!(heard(&mut posts, get), [question.to_string()], "either call may ask it");
    let other = posts.listen();
    assert_eq!(heard(&mut posts, get), ["end"], "one listens at a time");
    says(&mut posts, &note);
    posts.close(other);
    let next = posts.listen();
    assert_eq!(heard(&mut posts, next), [note.to_string()], "the stream ended before it");
}

#[test]
fn no_more_is_kept_than_the_bound() {
    let mut posts = Posts::new(Sharing::Session);
    let long = |number: u64| json!({ "method": "n", "params": { "n": number, "x": "x".repeat(MAX_KEPT / 4) } });
    for number in 0..20 {
        says(&mut posts, &long(number));
    }
    assert!(posts.kept_bytes <= MAX_KEPT);
    let get = posts.listen();
    let kept = heard(&mut posts, get);
    assert_eq!(kept.last(), Some(&long(19).to_string()));
    assert!((1..=4).contains(&kept.len()));
}

#[test]
fn a_message_for_one_client_of_many_is_for_no_other() {
    let mut posts = Posts::new(Sharing::Clients);
    let one = posted(&mut posts, &ask(1), false);
    says(&mut posts, &note());
    assert_eq!(heard(&mut posts, one).len(), 1);
    let other = posted(&mut posts, &ask(1), false);
    says(&mut posts, &note());
    assert_eq!(heard(&mut posts, one).len() + heard(&mut posts, other).len(), 0);
}

#[test]
fn in_a_session_the_end_of_a_stream_cancels_nothing() {
    let mut posts = Posts::new(Sharing::Session);
    let call = posted(&mut posts, &ask(1), false);
    let wire = written(&mut posts).remove(0);
    posts.close(call);
    assert!(written(&mut posts).is_empty());
    posted(&mut posts, &cancel(1), false);
    assert_eq!(written(&mut posts)[0]["params"]["requestId"], wire["id"]);
    says(&mut posts, &json!({ "id": wire["id"], "result": "late" }));
    posted(&mut posts, &cancel(1), false);
    assert!(written(&mut posts).is_empty(), "nothing is open under this id");
}

#[test]
fn a_cancelled_request_ends_and_a_cancelled_change_is_still_heard() {
    let mut posts = Posts::new(Sharing::Session);
    let (read, pay) = (posted(&mut posts, &ask(1), false), posted(&mut posts, &ask(2), true));
    let wire = written(&mut posts);
    posted(&mut posts, &cancel(1), false);
    posted(&mut posts, &cancel(2), false);
    assert_eq!(written(&mut posts).len(), 2);
    for asked in wire {
        says(&mut posts, &json!({ "id": asked["id"], "result": "late" }));
    }
    assert_eq!(heard(&mut posts, read), ["end"]);
    assert_eq!(heard(&mut posts, pay), [r#"{"id":2,"result":"late"}"#, "end"]);
}

#[test]
fn among_clients_the_end_of_a_stream_cancels_what_changes_nothing() {
    let mut posts = Posts::new(Sharing::Clients);
    let (read, pay) = (posted(&mut posts, &ask(1), false), posted(&mut posts, &ask(1), true));
    let done = posted(&mut posts, &ask(3), false);
    let wire = written(&mut posts);
    says(&mut posts, &json!({ "id": wire[2]["id"], "result": 1 }));
    for post in [read, pay, done] {
        posts.close(post);
    }
    let cancelled = written(&mut posts);
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], wire[0]["id"]);
    assert_eq!(cancelled[0]["method"], "notifications/cancelled");
}

#[test]
fn the_end_of_the_server_ends_every_post() {
    let mut posts = Posts::new(Sharing::Session);
    let sent = posted(&mut posts, &ask(1), true);
    let get = posts.listen();
    written(&mut posts);
    let unsent = posted(&mut posts, &ask(2), true);
    posts.end(Gone::Ended);
    posts.end(Gone::NotStarted("too late".into()));
    assert_eq!(
        heard(&mut posts, sent),
        ["Unknown: The MCP server ended before it answered", "end"]
    );
    let not_run = "No: The MCP server has ended; the tool did not run";
    assert_eq!(heard(&mut posts, unsent), [not_run, "end"]);
    assert_eq!(heard(&mut posts, get), ["end"]);
    let late = posted(&mut posts, &ask(3), true);
    assert_eq!(heard(&mut posts, late), [not_run, "end"]);
}

#[test]
fn a_server_that_was_never_there_ran_nothing() {
    let mut posts = Posts::new(Sharing::Session);
    let call = posted(&mut posts, &ask(1), true);
    written(&mut posts);
    posts.end(Gone::NotStarted("not found".into()));
    assert_eq!(heard(&mut posts, call), ["No: not found", "end"]);
}

#[test]
fn what_is_too_long_is_told_to_who_waits_for_it() {
    let mut posts = Posts::new(Sharing::Session);
    let call = posted(&mut posts, &ask(7), false);
    let wire = written(&mut posts).remove(0);
    let long = |id: String, asks| {
        Item::Oversized(Oversized { bytes: 99, id: Some(id.into()), asks, is_no_success: false })
    };
    posts.on_server(long(wire["id"].to_string(), false));
    assert_eq!(heard(&mut posts, call), [r#"99 bytes for Some("7")"#, "end"]);
    posts.on_server(long("\"q\"".into(), true));
    let refused = written(&mut posts).remove(0);
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q"), &json!(-32600)));
    posts.on_server(long("12".into(), false));
    assert!(written(&mut posts).is_empty());
}

#[test]
fn unread_answers_stop_the_reading_and_unwritten_posts_the_posting() {
    let mut posts = Posts::new(Sharing::Session);
    let call = posted(&mut posts, &ask(1), false);
    let long = json!({ "method": "n", "params": "x".repeat(MAX_WAITING_BYTES) });
    assert!(posts.may_read());
    says(&mut posts, &long);
    assert!(!posts.may_read());
    heard(&mut posts, call);
    assert!(posts.may_read());
    says(&mut posts, &long);
    posts.close(call);
    assert!(posts.may_read(), "nobody will read it");
    posted(&mut posts, &long, false);
    assert!(!posts.has_room(None));
    posts.wrote(100);
    assert!(posts.has_room(None));
}

#[test]
fn an_ambiguous_body_is_refused() {
    let mut posts = Posts::new(Sharing::Session);
    let line = Bytes::from_static(br#"{"id":1,"id":2,"method":"tools/call"}"#);
    let call = posts.post(&message_of(line, true));
    assert_eq!(heard(&mut posts, call), ["refused", "end"]);
    assert!(posts.to_server.is_empty());
}

/// Clients that leave without their answers do not use up the requests of those that stay.
#[test]
fn requests_that_nobody_waits_for_make_room() {
    let mut posts = Posts::new(Sharing::Session);
    for _ in 0..crate::servers::connection::ids::MAX_OPEN {
        let call = posted(&mut posts, &ask(1), false);
        posts.close(call);
    }
    written(&mut posts);
    let call = posted(&mut posts, &ask(1), false);
    let wire = written(&mut posts).remove(0);
    assert!(matches!(jsonrpc::read(wire.to_string().as_bytes()), Line::One(_)));
    says(&mut posts, &json!({ "id": wire["id"], "result": 1 }));
    assert_eq!(heard(&mut posts, call).len(), 2);
}

#[test]
fn a_batch_cancels_no_request_of_another() {
    let mut posts = Posts::new(Sharing::Clients);
    let running = posted(&mut posts, &ask(7), true);
    written(&mut posts);
    let other = json!([cancel(1), cancel(7), { "id": 1, "method": "ping" }]);
    posted(&mut posts, &other, false);
    let sent = written(&mut posts);
    let batch = sent[0].as_array().unwrap();
    assert!(batch[..2].iter().all(|it| it["params"]["requestId"].is_null()), "{sent:?}");
    assert_eq!(batch[2]["method"], "ping");
    assert!(heard(&mut posts, running).is_empty());
}

#[test]
fn a_request_is_cancelled_once() {
    let mut posts = Posts::new(Sharing::Session);
    let twice = json!([ask(1), cancel(1), cancel(1)]);
    let number = posted(&mut posts, &twice, false);
    assert_eq!(heard(&mut posts, number), ["end"]);
    // A refused batch cancels nothing.
    let refused = json!([ask(2), cancel(2), { "id": null, "method": "ping" }]);
    let number = posted(&mut posts, &refused, false);
    assert_eq!(heard(&mut posts, number), ["refused", "end"]);
    let number = posted(&mut posts, &ask(3), false);
    assert!(heard(&mut posts, number).is_empty());
}

#[test]
fn what_may_be_another_clients_is_given_to_none() {
    let mut posts = Posts::new(Sharing::Clients);
    let number = posted(&mut posts, &ask(1), false);
    says(&mut posts, &note());
    assert_eq!(heard(&mut posts, number).len(), 1);
    posts.is_mixed = true;
    says(&mut posts, &note());
    assert!(heard(&mut posts, number).is_empty());
}

#[test]
fn who_listens_next_hears_what_the_one_before_did_not_take() {
    let mut posts = Posts::new(Sharing::Session);
    let first = posts.listen();
    says(&mut posts, &note());
    assert_eq!(heard(&mut posts, first).len(), 1);
    says(&mut posts, &note());
    says(&mut posts, &note());
    let second = posts.listen();
    says(&mut posts, &note());
    assert_eq!(heard(&mut posts, first), ["end"]);
    assert_eq!(heard(&mut posts, second).len(), 3);
    posts.close(first);
    posts.close(second);
}
