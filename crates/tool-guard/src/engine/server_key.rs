//! The key by which the server recognizes a repeat, in the arguments: made if it is absent, kept in the record, and sent
//! again with a repeat of a call of unknown outcome.
use super::{
    call::McpCall,
    tool::{ServerLink, resolution, settle_in_store},
    unknowns::{BlockedByEqual, ServerKey, leaves_unknown},
};
use crate::wire::params;
use std::sync::Arc;
use tool_reliability::{
    idempotency::{DedupeRecord, RecordState},
    telemetry::TARGET,
};
use tr_core::{
    BoxError, FencingToken, SystemClock, ToolCall, ToolOutcome, WallClock, call::Attachment,
    canonical::Key,
};

/// A call with its key, and the record of the equal call of unknown outcome that it repeats.
type Keyed = (Arc<McpCall>, ToolCall, Option<Key>);

/// Puts the server's key into the call, if its tool has one: that of the call of unknown outcome that it repeats, by its
/// own record or as the one that blocks it, else its own, else a new one. Such a repeat is not blocked.
pub(super) async fn put(
    link: &ServerLink,
    (mcp, mut call): (Arc<McpCall>, ToolCall),
    blocked: &mut Option<BlockedByEqual>,
) -> Keyed {
    let Some(tool) = call.parts().manifest.clone() else { return (mcp, call, None) };
    let Some(pointer) = &tool.server_key else { return (mcp, call, None) };
    let now = SystemClock.unix_ms();
    let is_valid = |it: &ServerKey| it.is_valid(tool.server_key_ttl, now);
    let record = match call.parts().idempotency.id {
        Some(id) => link.record(&id.key).await.filter(|it| {
            matches!(it.state, RecordState::Inflight | RecordState::Unknown)
                && it.request.params_digest == id.digest.to_string()
        }),
        None => None,
    };
    // Its own call of unknown outcome, else the one that blocks it.
    let (before, repeated) = match (&record, &*blocked) {
        (Some(record), _) => (Some(ServerKey::of(record)), None),
        (None, Some(by)) => (Some(by.server_key.clone()), by.key),
        (None, None) => (None, None),
    };
    // What was sent without a key, or too long ago, is not repeated.
    let before = match before.map(|key| key.filter(is_valid)) {
        Some(None) => return (mcp, call, None),
        Some(before) => before,
        None => None,
    };
    let given = params::text_at(call.parts().params.get(), pointer);
    let why = match (&before, &given) {
        (Some(_), _) => "that of the call of unknown outcome that it repeats",
        (None, None) => "a new one, since it has none",
        (None, Some(_)) => "",
    };
    let new = || ServerKey::new(given.unwrap_or_else(uuid), now);
    let key = before.unwrap_or_else(new);
    let Some((mcp, params)) = mcp.with_server_key(pointer, key).map(|it| (Arc::new(it.0), it.1))
    else {
        let place = pointer.to_string();
        tracing::warn!(target: TARGET, event = "server_key_has_no_place", tool = tool.tool.name(), place);
        return (mcp, call, None);
    };
    if !why.is_empty() {
        tracing::info!(target: TARGET, event = "server_key_put", tool = tool.tool.name(), why);
    }
    *blocked = None;
    let parts = call.parts_mut();
    parts.params = params;
    parts.attachment = Attachment::new(mcp.clone());
    parts.hints.expected_retry_safe = true;
    parts.idempotency.repeats = record.map(|it| it.epoch);
    if let (Some(about), Some(key)) = (&mut parts.idempotency.about, &mcp.server_key) {
        *about = format!("{about}\n{}: {key}", ServerKey::NOTED).into();
    }
    (mcp, call, repeated)
}

/// Settles the calls that a call has repeated under other ids, now that the server has said how both ended.
pub(super) async fn settle(
    link: &ServerLink,
    mcp: &McpCall,
    repeated: Option<Key>,
    end: &Result<ToolOutcome, BoxError>,
) {
    let (Some(key), Ok(outcome)) = (&mcp.server_key, end) else { return };
    if outcome.from_cache() || leaves_unknown(outcome) {
        return;
    }
    if let Some(equals) = &mcp.trace.equals {
        link.unknowns.settled(equals, key);
    }
    let (Some(key), Some(store)) = (repeated, link.store()) else { return };
    if let Some(DedupeRecord { epoch, .. }) = link.record(&key).await {
        settle_in_store(store, FencingToken { key, epoch }, resolution(outcome.clone())).await;
    }
}

/// A new key, in the form of a UUID of version 4.
fn uuid() -> Box<str> {
    let hex = format!("{:032x}", fastrand::u128(..));
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
    format!("{a}-{b}-4{c}-a{d}-{e}").into()
}
