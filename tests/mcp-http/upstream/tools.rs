//! What the server's tools answer.
use super::{State, Upstream};
use serde_json::{Value, json};
use tr_core::{SystemClock, WallClock as _};

pub(super) fn listed(wants_header: bool) -> Value {
    let mut order = json!({ "type": "string" });
    if wants_header {
        order["x-mcp-header"] = "Order".into();
    }
    let schema = json!({ "type": "object", "properties": { "order": order } });
    let tool = |name: &str, annotations: Value| json!({ "name": name, "inputSchema": schema, "annotations": annotations });
    let reads = || json!({ "readOnlyHint": true });
    json!({ "tools": [tool("pay", json!({})), tool("balance", reads()), tool("payments", reads())],
            "ttlMs": 60_000, "cacheScope": "private" })
}

/// A call that is executed now.
pub(super) fn executed(params: &Value) -> Value {
    let mut executed = params.clone();
    executed["at"] = SystemClock.unix_ms().into();
    executed
}

/// The result of `payments`.
pub(super) fn payments(state: &State) -> Value {
    let paid = state.executed.iter().filter(|it| it["name"] == "pay" && !state.hides);
    let paid = paid.map(|it| json!({ "order": it["arguments"]["order"], "at": it["at"] }));
    json!({ "content": [], "structuredContent": { "payments": paid.collect::<Vec<_>>() } })
}

impl Upstream {
    /// From now on `payments` shows none, or all.
    pub(crate) fn hide_payments(&self, hides: bool) {
        self.state().hides = hides;
    }
}
