//! What a server calls its tools is shown, and acts nowhere.
use super::{admin, around, call, request};
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tool_reliability::ToolStack;
use tower::ServiceExt;
use tr_testkit::calls::answers;

#[tokio::test(start_paused = true)]
async fn a_tools_name_acts_on_no_terminal_and_no_page() {
    let hostile = "pay</script><script>\"\u{1b}[2J\u{9b}31m\u{202e}\u{2028}\r\n";
    let stack = ToolStack::default();
    around(&stack, answers("paid")).oneshot(call(hostile, "k")).await.unwrap();
    let admin = admin(&stack);
    let response = admin.clone().oneshot(request(Method::GET, "")).await.unwrap();
    // What a browser takes for a page is said to be none.
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let shown = std::str::from_utf8(&body).unwrap();
    assert_eq!(tr_core::printable_lines(shown), shown);
    let state: Value = serde_json::from_str(shown).unwrap();
    let breakers = state["breakers"].as_array().unwrap();
    assert!(breakers.iter().any(|it| it["name"] == hostile), "{shown}");

    let order = json!({ "action": "reset", "breaker": "\u{202e}\u{9b}" }).to_string();
    let refused = admin.oneshot(request(Method::POST, &order)).await.unwrap();
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    let shown = std::str::from_utf8(&body).unwrap();
    assert_eq!(tr_core::printable_lines(shown), shown);
}
