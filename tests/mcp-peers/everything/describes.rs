//! What the server says of itself: handshake, lists, resources, prompts, methods it does not know.
use crate::{
    compare,
    peer::Server,
    session::{Session, Step},
};
use serde_json::{Value, json};

#[test]
fn it_describes_itself() {
    compare::in_every_mode(&Server::everything(), script);
}

fn script(mut session: Session) -> Vec<Step> {
    session.request("ping", json!({}));
    for version in
        ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01"]
    {
        let client = json!({ "name": "mcp-peers", "version": "0" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        session.request("initialize", params);
    }
    session.request("initialize", json!({}));
    session.notify("notifications/initialized", json!({}), |message| {
        message["method"] == "notifications/tools/list_changed"
    });
    for list in ["tools", "resources", "resources/templates", "prompts", "tasks"] {
        session.request(&format!("{list}/list"), json!({}));
        session.request(&format!("{list}/list"), json!({ "cursor": "no such page" }));
    }
    resources(&mut session);
    prompts(&mut session);
    for (method, params) in [
        ("server/discover", json!({})),
        ("no/such/method", json!({ "x": [1, 2.5e300, "y"] })),
        ("tools/list/no", json!({})),
        ("logging/setLevel", json!({ "level": "loud" })),
        ("tasks/get", json!({ "taskId": "none" })),
        ("tasks/cancel", json!({ "taskId": "none" })),
    ] {
        session.request(method, params);
    }
    session.leave()
}

fn resources(session: &mut Session) {
    session.request("logging/setLevel", json!({ "level": "debug" }));
    for uri in [
        "demo://resource/static/document/architecture.md",
        "demo://resource/static/document/features.md",
        "demo://resource/dynamic/text/1",
        "demo://resource/dynamic/blob/2",
        "demo://resource/dynamic/text/none",
        "demo://nowhere",
    ] {
        session.request("resources/read", json!({ "uri": uri }));
        session.request("resources/subscribe", json!({ "uri": uri }));
        session.request("resources/unsubscribe", json!({ "uri": uri }));
    }
}

fn prompts(session: &mut Session) {
    let prompts: [(&str, Value); 6] = [
        ("simple-prompt", json!({})),
        ("args-prompt", json!({ "city": "Zürich", "state": "ZH" })),
        ("args-prompt", json!({})),
        ("completable-prompt", json!({ "department": "Engineering", "name": "Alice" })),
        ("resource-prompt", json!({ "resourceType": "Text", "resourceId": "3" })),
        ("no such prompt", json!({})),
    ];
    for (name, arguments) in prompts {
        session.request("prompts/get", json!({ "name": name, "arguments": arguments }));
    }
    session.request(
        "completion/complete",
        json!({
            "ref": { "type": "ref/prompt", "name": "completable-prompt" },
            "argument": { "name": "department", "value": "E" },
        }),
    );
}
