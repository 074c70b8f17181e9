//! Tools that answer at once, with every kind of content, and failures.
use super::with_hello;
use crate::{compare, peer::Server, session::Session};
use serde_json::{Value, json};

#[test]
fn every_kind_of_answer_comes_through() {
    compare::in_every_mode(&Server::everything(), |session| {
        with_hello(session, |session| {
            content(session);
            announced(session);
            failures(session);
        })
    });
}

fn content(session: &mut Session) {
    for message in [
        "",
        "späß 🦀 \u{2028} \\ \" \u{1}",
        "Error: ECONNRESET, retry after 1 s",
        &"long ".repeat(100_000),
    ] {
        session.call("echo", json!({ "message": message }));
    }
    for kind in ["error", "success", "debug"] {
        session.call("get-annotated-message", json!({ "messageType": kind, "includeImage": true }));
    }
    // The server's environment, which is what the client gave.
    let env = session.call("get-env", json!({}));
    assert!(env.to_string().contains("TZ"), "{env}");
    session.call("get-tiny-image", json!({}));
    session.call("get-resource-links", json!({ "count": 4 }));
    for kind in ["Text", "Blob"] {
        session.call("get-resource-reference", json!({ "resourceType": kind, "resourceId": 2 }));
    }
    for city in ["New York", "Chicago", "Los Angeles"] {
        let answer = session.call("get-structured-content", json!({ "location": city }));
        assert!(answer["result"]["structuredContent"]["humidity"].is_number(), "{answer}");
    }
    session.call("get-sum", json!({ "a": 0.1, "b": 0.2 }));
}

/// Tools whose calls make the server tell more than the answer.
fn announced(session: &mut Session) {
    for kind in ["resource", "resourceLink"] {
        let data = "data:text/plain;base64,aGVsbG8gaGVsbG8gaGVsbG8=";
        session.call(
            "gzip-file-as-resource",
            json!({ "name": "h.gz", "data": data, "outputType": kind }),
        );
    }
    let last = session.request("resources/list", json!({}));
    let uri = last["result"]["resources"]
        .as_array()
        .and_then(|all| all.last())
        .map_or(&Value::Null, |it| &it["uri"]);
    assert!(uri.as_str().is_some_and(|uri| uri.ends_with("h.gz")), "{uri}");
    session.request("resources/read", json!({ "uri": uri }));
    session.request("resources/subscribe", json!({ "uri": uri }));
    for toggle in ["toggle-simulated-logging", "toggle-subscriber-updates"] {
        session.call(toggle, json!({}));
        session.call(toggle, json!({}));
    }
}

/// No more of them than a turn may have.
fn failures(session: &mut Session) {
    session.call("no such tool", json!({}));
    session.call("get-sum", json!({ "a": "x" }));
    session.call("get-structured-content", json!({ "location": "Atlantis" }));
    let last =
        session.call("simulate-research-query", json!({ "topic": "a task that is no task" }));
    assert_eq!(last["result"]["isError"], true, "{last}");
    session.call("echo", json!({ "message": "and all is well" }));
}
