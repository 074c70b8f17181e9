//! Progress, cancellation, and tasks that are called now and fetched later.
use super::{hello, with_hello};
use crate::{
    compare,
    peer::Server,
    session::{Session, Step, answers},
};
use serde_json::{Value, json};

#[test]
fn progress_and_cancellation_arrive() {
    compare::in_every_mode(&Server::everything(), |session| {
        with_hello(session, |session| {
            progress(session);
            cancellation(session);
        })
    });
}

#[test]
fn a_task_is_called_now_and_fetched_later() {
    compare::in_every_mode(&Server::everything(), task);
}

fn operation(seconds: f64, steps: u32, token: Option<Value>) -> Value {
    let meta = token.map_or(json!({}), |token| json!({ "progressToken": token }));
    json!({
        "name": "trigger-long-running-operation",
        "arguments": { "duration": seconds, "steps": steps },
        "_meta": meta,
    })
}

fn progress(session: &mut Session) {
    let tokens = [json!("t"), json!(0), json!(""), json!(4), json!("t")];
    for token in tokens.map(Some) {
        session.request("tools/call", operation(0.1, 5, token));
    }
    session.request("tools/call", operation(0.1, 5, None));
    // Two at once, one of which is done long before the other begins to tell.
    let calls = [("slow", 0.4, 2), ("fast", 0.05, 1)].map(|(id, seconds, steps)| {
        let params = operation(seconds, steps, Some(json!(id)));
        format!(
            "{}\n",
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        )
    });
    session.step(calls.concat().as_bytes(), |message| answers(message, &json!("slow")));
}

fn cancellation(session: &mut Session) {
    for (id, token) in [("c", json!("c")), ("d", json!(1))] {
        let params = operation(0.9, 4, Some(token));
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        session.step(format!("{call}\n").as_bytes(), |note| note["params"]["progress"] == 1);
        // The server keeps on to the end, and says nothing then.
        let cancel = json!({ "requestId": id, "reason": "changed my mind" });
        session.notify("notifications/cancelled", cancel, |note| note["params"]["progress"] == 4);
        session.aside(b"");
    }
    for id in [json!("c"), json!("never used"), json!(null), json!(-1.5)] {
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        session.aside(cancel.to_string().as_bytes());
    }
    session.call("echo", json!({ "message": "still there" }));
}

fn task(mut session: Session) -> Vec<Step> {
    hello(&mut session, json!({ "elicitation": {} }));
    let created = session.request(
        "tools/call",
        json!({
            "name": "simulate-research-query", "task": {},
            "arguments": { "topic": "python", "ambiguous": true },
        }),
    );
    let id = &created["result"]["task"]["taskId"];
    assert!(id.is_string(), "{created}");
    let report = session.request("tasks/result", json!({ "taskId": id }));
    assert!(report.to_string().contains("python (snake)"), "{report}");
    session.request("tasks/get", json!({ "taskId": id }));
    session.request("tasks/cancel", json!({ "taskId": id }));
    session.request("tasks/list", json!({}));
    // The server stays for as long as it keeps the task.
    session.terminate()
}
