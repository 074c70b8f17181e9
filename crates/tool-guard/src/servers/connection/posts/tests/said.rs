//! What a client that left, or reads slowly, hears.
use super::*;

fn watched(posts: &mut Posts, line: &Value) -> (u64, Presence) {
    let message = message_of(line.to_string().into(), true);
    let presence = message.presence.clone();
    (posts.post(&message), presence)
}

fn question() -> Value {
    json!({ "id": 0, "method": "roots/list" })
}

#[test]
fn a_client_that_left_is_asked_on_another_stream() {
    let mut posts = Posts::new(Sharing::Session);
    let (call, presence) = watched(&mut posts, &ask(1));
    let get = posts.listen();
    presence.away();
    says(&mut posts, &question());
    assert_eq!((heard(&mut posts, call).len(), heard(&mut posts, get).len()), (0, 1));
    presence.here();
    says(&mut posts, &question());
    assert_eq!((heard(&mut posts, call).len(), heard(&mut posts, get).len()), (1, 0));
    // Where there is no other, it may resume this one.
    posts.close(get);
    presence.away();
    says(&mut posts, &question());
    assert_eq!(heard(&mut posts, call).len(), 1);
    presence.gone();
    presence.here();
    says(&mut posts, &question());
    assert!(heard(&mut posts, call).is_empty());
    let get = posts.listen();
    assert_eq!(heard(&mut posts, get).len(), 1, "kept until then");
}

#[test]
fn a_cancelled_change_holds_no_place_and_is_asked_nothing() {
    let mut posts = Posts::new(Sharing::Session);
    let pay = posted(&mut posts, &ask(1), true);
    let wire = written(&mut posts).remove(0);
    assert_eq!(posts.streams(), 1);
    posted(&mut posts, &cancel(1), false);
    assert_eq!(posts.streams(), 0);
    says(&mut posts, &question());
    assert!(heard(&mut posts, pay).is_empty());
    says(&mut posts, &json!({ "id": wire["id"], "result": "late" }));
    assert_eq!(heard(&mut posts, pay), [r#"{"id":1,"result":"late"}"#, "end"]);
}

fn progress(token: &Value, bytes: usize) -> Value {
    let params = json!({ "progressToken": token, "progress": 1, "message": "x".repeat(bytes) });
    json!({ "method": "notifications/progress", "params": params })
}

#[test]
fn a_slow_client_among_others_holds_up_none_and_gets_its_answer() {
    let mut posts = Posts::new(Sharing::Clients);
    let call = |id| json!({ "id": id, "method": "tools/call", "params": { "_meta": { "progressToken": id } } });
    let (slow, other) = (posted(&mut posts, &call(1), true), posted(&mut posts, &call(2), true));
    let wire = written(&mut posts);
    for _ in 0..20 {
        says(&mut posts, &progress(&wire[0]["id"], MAX_WAITING_BYTES / 4));
    }
    assert!(posts.may_read() && posts.unread <= MAX_WAITING_BYTES);
    let long = "x".repeat(2 * MAX_WAITING_BYTES);
    says(&mut posts, &json!({ "id": wire[0]["id"], "result": long }));
    says(&mut posts, &json!({ "id": wire[1]["id"], "result": 2 }));
    assert!(posts.may_read());
    assert_eq!(heard(&mut posts, other), [r#"{"id":2,"result":2}"#, "end"]);
    let heard = heard(&mut posts, slow);
    assert!((3..=5).contains(&(heard.len() - 2)), "{}", heard.len());
    assert!(heard[heard.len() - 2].len() > long.len());
    assert_eq!(posts.unread, 0);
}

#[test]
fn a_subscription_that_is_read_too_slowly_ends() {
    let mut posts = Posts::new(Sharing::Clients);
    let slow = posted(&mut posts, &json!({ "id": 1, "method": "subscriptions/listen" }), false);
    let wire = written(&mut posts).remove(0);
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": wire["id"] });
    let note = json!({ "method": "notifications/resources/updated",
                       "params": { "_meta": meta, "x": "x".repeat(MAX_WAITING_BYTES / 4) } });
    for _ in 0..20 {
        says(&mut posts, &note);
    }
    assert!(posts.unread <= MAX_WAITING_BYTES);
    let cancelled = written(&mut posts);
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], wire["id"]);
    assert_eq!(heard(&mut posts, slow).last().unwrap(), "end");
}
