//! Who may look, and who may order.
use super::{admin, answers, around, call, order, request, send, state};
use http::{Method, StatusCode};
use serde_json::json;
use tool_reliability::{
    ToolStack,
    admin::{Admin, Peer},
};
use tower::ServiceExt;

#[tokio::test]
async fn who_may_not_changes_nothing() {
    let stack = ToolStack::default();
    let off = || request(Method::POST, r#"{"action":"switch","on":false}"#);
    let mut stranger = off();
    stranger.extensions_mut().insert(Peer("192.0.2.7:5000".parse().unwrap()));
    let mut nobody = off();
    nobody.extensions_mut().clear();
    let mut rebound = off();
    rebound.headers_mut().insert("host", "attacker.example".parse().unwrap());
    let mut page = off();
    page.headers_mut().insert("origin", "https://attacker.example".parse().unwrap());
    for request in [stranger, nobody, rebound, page] {
        assert_eq!(send(&Admin::new(&stack), request).await.0, StatusCode::FORBIDDEN);
    }
    let behind_token = admin(&stack);
    let mut without = off();
    without.headers_mut().remove("authorization");
    assert_eq!(send(&behind_token, without).await.0, StatusCode::FORBIDDEN);
    assert!(stack.kill_switch().is_on());
    for weak in ["", "short", "0123456789 abcdef", "0123456789abcdéf"] {
        assert!(Admin::new(&stack).token(weak).is_err(), "{weak}");
    }

    let mut with = off();
    with.extensions_mut().insert(Peer("192.0.2.7:5000".parse().unwrap()));
    assert_eq!(send(&behind_token, with).await.0, StatusCode::OK);
    assert!(!stack.kill_switch().is_on());
}

/// Any program of this machine could send them: that of an agent, too.
#[tokio::test(start_paused = true)]
async fn orders_are_refused_without_a_token_and_reads_are_not() {
    let stack = ToolStack::default();
    around(&stack, answers("ok")).oneshot(call("pay", "k")).await.unwrap();
    let admin = Admin::new(&stack).on_reload(|| panic!("it is not reloaded"));
    for action in ["reset", "force_open", "disable", "shadow", "enforce"] {
        let refused = order(&admin, json!({ "action": action, "breaker": "pay" })).await;
        assert_eq!(refused.0, StatusCode::FORBIDDEN, "{action}");
        assert!(refused.1["error"].as_str().unwrap().contains("orders need a token"));
    }
    let key = call("pay", "k").id().unwrap().unwrap().key.to_string();
    for refused in [
        json!({ "action": "flush", "session": "s", "confirm": 1 }),
        json!({ "action": "settle", "key": key, "outcome": "did_not_run", "force": true }),
        json!({ "action": "switch", "on": false }),
        json!({ "action": "reload" }),
    ] {
        assert_eq!(order(&admin, refused.clone()).await.0, StatusCode::FORBIDDEN, "{refused}");
    }
    assert!(stack.kill_switch().is_on() && stack.records().records().len() == 1);
    assert_eq!(state(&admin).await["breakers"][1]["state"], "CLOSED");
}
