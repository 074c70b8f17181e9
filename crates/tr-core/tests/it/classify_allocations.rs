//! Classifying allocates nothing once the index stands.
use std::io;
use tr_core::{SetClock, ToolError, ToolManifest, classify};
use tr_testkit::alloc;

#[test]
fn classifying_allocates_nothing() {
    let long = "Traceback (most recent call last):\n  x\nValueError: invalid date ".repeat(200);
    let error = ToolError::new("E_REMOTE", "upstream said: 503 Service Unavailable");
    let io = io::Error::from(io::ErrorKind::TimedOut);
    let manifest = ToolManifest::new("x");
    let all = || {
        let header =
            |name: &str| (name == "retry-after").then_some("Sun, 06 Nov 1994 08:49:37 GMT");
        (
            classify::message(&long),
            classify::mcp_is_error("Expected string but received undefined"),
            classify::tool_error(&error).with_manifest(&manifest),
            classify::error(&error),
            classify::error(&io),
            classify::json_rpc(-32_603, "rate limit exceeded"),
            classify::http_response(503, header, &SetClock::at(0)),
            classify::grpc(14, Some("10")),
            classify::is_deterministic(&long),
        )
    };
    let first = all();
    let mut again = None;
    let allocations = alloc::count(|| again = Some(all()));
    assert_eq!(again, Some(first));
    assert_eq!(allocations.count, 0);
}
