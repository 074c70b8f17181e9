//! A guard that is killed leaves nothing behind.
use crate::{
    everything,
    peer::{Server, Way},
    session::{Session, until},
};
use serde_json::json;

#[test]
fn a_server_does_not_outlive_a_killed_guard() {
    let mut session = Session::start(&Server::everything(), Way::Enforce);
    everything::hello(&mut session, json!({}));
    let params = json!({
        "name": "trigger-long-running-operation", "arguments": { "duration": 900, "steps": 9000 },
        "_meta": { "progressToken": "alive" },
    });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    session.step(format!("{call}\n").as_bytes(), |note| note["params"]["progress"] == 2);
    let mark = session.kill();
    until("all of its processes are gone", || mark.alive().is_empty().then_some(()));
}
