//! The server asks its client while the client waits for a tool.
use super::hello;
use crate::{
    compare,
    peer::Server,
    session::{Session, Step},
};
use serde_json::json;

#[test]
fn it_asks_its_client() {
    compare::in_every_mode(&Server::everything(), script);
}

fn script(mut session: Session) -> Vec<Step> {
    hello(
        &mut session,
        json!({
            "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {}, "url": {} },
            "tasks": { "requests": { "elicitation": { "create": {} }, "sampling": { "createMessage": {} } } },
        }),
    );
    session.call("get-roots-list", json!({}));
    session.notify("notifications/roots/list_changed", json!({}), |message| {
        message["method"] == "notifications/message"
    });
    let sampled =
        session.call("trigger-sampling-request", json!({ "prompt": "a haiku", "maxTokens": 20 }));
    assert!(sampled.to_string().contains("Sampled: späß"), "{sampled}");
    session.call("trigger-sampling-request", json!({ "prompt": "please refuse" }));
    session.call("trigger-elicitation-request", json!({}));
    session.call("trigger-elicitation-request-async", json!({}));
    session.call("trigger-sampling-request-async", json!({ "prompt": "another" }));

    let url = json!({ "url": "https://example.com/consent" });
    session.call("trigger-url-elicitation", url);
    // Refuses once, with data that the client needs, and then takes the same call.
    let first = json!({ "url": "https://example.com/consent", "errorPath": true });
    let refused = session.call("trigger-url-elicitation", first.clone());
    assert_eq!(refused["error"]["code"], -32042, "{refused}");
    let taken = session.call("trigger-url-elicitation", first);
    assert!(taken["error"].is_null(), "{taken}");
    session.leave()
}
