//! The key by which the server recognizes a repeat, in the arguments: made if it is absent, kept in the record, and sent
//! again with a repeat of that record's call while its outcome is unknown.
use super::{
    call::McpCall,
    failure::Failure,
    tool::{ServerLink, resolution},
};
use crate::wire::params;
use std::{sync::Arc, time::Duration};
use tool_reliability::{
    idempotency::{DedupeRecord, RecordState},
    telemetry::TARGET,
};
use tr_core::{
    BoxError, DedupeMode, FailureInfo, FencingToken, Ran, RetryOverride, SystemClock, ToolCall,
    ToolOutcome, Verdict, WallClock, call::Attachment, classify, code,
};

/// Under this name a record notes when the key was first sent, in milliseconds since 1970, and its JSON.
const NOTED: &str = "server_key";

/// How long after the first attempt of a call another one may begin.
const ATTEMPTS: Duration = Duration::from_secs(30);

/// Puts the server's key into a call whose tool has one: its own, else a new one. If the call of its record is of unknown
/// outcome, it is that call once more, with its key and beside the record; what was sent without a key, or too long ago,
/// is left to the record, which refuses it.
pub(super) fn put(mcp: &mut Arc<McpCall>, call: &mut ToolCall, record: Option<&DedupeRecord>) {
    let Some(tool) = call.parts().manifest.clone() else { return };
    let Some(at) = &tool.server_key else { return };
    let (now, about) = (SystemClock.unix_ms(), &call.parts().idempotency);
    let unknown = record.filter(|record| record.state == RecordState::Unknown);
    let given = params::value_at(call.parts().params.get(), at);
    let (key, since) = match unknown {
        Some(record) => {
            let digest = about.id.map(|id| id.digest.to_string());
            // A weak id may name another call by now.
            let is_same =
                digest.as_ref() == Some(&record.request.params_digest) && about.ttls.done.is_none();
            let Some(first) = noted(record).filter(|_| is_same) else { return };
            first
        }
        None => (given.clone().unwrap_or_else(uuid), now),
    };
    let left = tool.server_key_ttl.saturating_sub(Duration::from_millis(now.saturating_sub(since)));
    if left.is_zero() {
        return;
    }
    if given.as_deref() != Some(&*key) {
        let name = tool.tool.name();
        let Some((changed, params)) = mcp.with_argument(at, &key) else {
            return tracing::warn!(target: TARGET, event = "server_key_has_no_place", tool = name, place = %at);
        };
        let why = if unknown.is_some() { "the call is repeated" } else { "the call has none" };
        tracing::info!(target: TARGET, event = "server_key_put", tool = name, why);
        *mcp = Arc::new(changed);
        call.parts_mut().params = params;
    }
    let parts = call.parts_mut();
    parts.hints.expected_retry_safe = true;
    let max_elapsed = Some(left.min(ATTEMPTS));
    parts.retry = Some(RetryOverride { max_elapsed, ..parts.retry.take().unwrap_or_default() });
    match unknown.zip(parts.idempotency.id) {
        Some((record, id)) => {
            // Its end may say nothing of the runs before it, so it claims nothing.
            parts.idempotency.mode = DedupeMode::Disabled;
            let fence = FencingToken { key: id.key, epoch: record.epoch };
            *mcp = Arc::new(mcp.repeating(fence));
        }
        None => {
            let noted = |about: Box<str>| format!("{about}\n{NOTED}: {since} {key}").into();
            parts.idempotency.about = parts.idempotency.about.take().map(noted);
        }
    }
    parts.attachment = Attachment::new(mcp.clone());
}

/// The key of a record's call, and since when.
fn noted(record: &DedupeRecord) -> Option<(Box<str>, u64)> {
    let (since, key) = record.request.about.get(NOTED)?.split_once(' ')?;
    Some((key.into(), since.parse().ok()?))
}

/// Settles the record of a call that was repeated by the success of the repeat. A failure, such as a refused credential,
/// says nothing of the run before it.
pub(super) async fn settle(
    link: &ServerLink,
    mcp: &McpCall,
    end: &mut Result<ToolOutcome, BoxError>,
) {
    const BEFORE: &str = "[MAY HAVE RUN] This was a repeat: the same call before it may have run.";
    let Some(run) = mcp.repeats else { return };
    match end {
        Ok(outcome) if outcome.error().is_some() => outcome.parts_mut().notes.push(BEFORE.into()),
        Ok(outcome) => {
            link.records.settle(run, resolution(outcome.clone())).await;
            mcp.trace.equals.iter().for_each(|equals| link.unknowns.is_over(equals, true));
        }
        Err(error) if classify::error(&**error).end.ran == Ran::No => {
            let facts = FailureInfo::new(code::OUTCOME_UNKNOWN, Ran::Unknown, Verdict::Permanent);
            *end = Err(Failure::said(format!("{error}. {BEFORE}"), facts).into());
        }
        Err(_) => {}
    }
}

/// The JSON of a new key, in the form of a UUID of version 4.
fn uuid() -> Box<str> {
    let hex = format!("{:032x}", fastrand::u128(..));
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
    format!("\"{a}-{b}-4{c}-a{d}-{e}\"").into()
}
