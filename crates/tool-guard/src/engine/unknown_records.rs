//! Calls of unknown outcome among the records that other processes left.
use super::{
    failure::Failure,
    unknowns::{BARS, BlockedByEqual, Earlier},
};
use std::time::Duration;
use tool_reliability::idempotency::{
    DedupeRecord, RecordListing, RecordState, StoreHandle,
    store::{StateFilter, StoreError},
};
use tr_core::{
    FailureInfo, Ran, SystemClock, ToolCall, ToolOutcome, Verdict, WallClock,
    canonical::{Digest, Key},
    code,
};

/// More calls with the same params than one conversation has.
const LISTED: usize = 256;

/// A call is not run, because the records do not tell whether an equal one may have run.
fn not_compared(cause: StoreError) -> Failure {
    let verdict = if cause.is_transient() { Verdict::TRANSIENT } else { Verdict::Permanent };
    let facts = FailureInfo::new(code::STORE_UNAVAILABLE, Ran::No, verdict).because(cause);
    let said = "the call was not run, because the records of equal calls could not be read";
    Failure::said(said, facts)
}

/// What is noted of a record's call whose params have what does not count: their digest as equal calls are compared.
pub(crate) const ALIKE: &str = "alike";

/// The digest as it is noted.
pub(crate) fn noted(alike: Digest) -> String {
    format!("{:x}", alike.short())
}

/// The call that blocks this one among the records of its conversation that another process left, by the digests under which
/// an equal one may be recorded, and by that of its params as they are compared.
///
/// # Errors
/// If the store cannot be read: then an equal call may be among them. If a person has recorded of one that it ran, no
/// longer ago than it would block this one, and this caller `learns` that now.
pub(crate) async fn in_store(
    records: &StoreHandle<ToolOutcome>,
    call: &ToolCall,
    session: &str,
    (recorded, alike): (&[Digest], Digest),
    learns: impl Fn(Key) -> bool,
) -> Result<Option<BlockedByEqual>, Failure> {
    let parts = call.parts();
    let listed = async |params, state| {
        records.of_session(session, params, state, LISTED).await.map_err(not_compared)
    };
    let mut found = RecordListing::default();
    for params in recorded {
        let equal = listed(Some(params), StateFilter::Unknown).await?;
        found.records.extend(equal.records);
        found.unreadable.extend(equal.unreadable);
    }
    if found.records.is_empty() {
        let alike = noted(alike);
        let is_alike = |it: &DedupeRecord| it.request.about.get(ALIKE) == Some(&alike);
        let others = listed(None, StateFilter::Unknown).await?;
        found.records.extend(others.records.into_iter().filter(is_alike));
    }
    let own = parts.idempotency.id.map(|id| id.key);
    let now = SystemClock.unix_ms();
    // Calls whose params say what is wanted are one for as long as they are recorded, also from before that was declared.
    let during = if call.is_identified() { u64::MAX } else { BARS.as_millis() as u64 };
    let until = |changed_at: u64| changed_at.saturating_add(during);
    let bars = |key: Key, tool: &str, until: u64| {
        let is_equal = tool == parts.tool.full_name() && Some(key) != own && until >= now;
        is_equal.then(|| {
            BlockedByEqual::by(Earlier::Recorded, Some(key), Duration::from_millis(until - now))
        })
    };
    let barred_by =
        |it: &DedupeRecord| bars(it.key.parse().ok()?, &it.tool, until(it.updated_at_ms));
    let barred = found.records.iter().find_map(barred_by).or_else(|| {
        // What it does not tell is taken to be equal.
        found.unreadable.iter().find_map(|record| {
            let tool = record.tool.as_deref().unwrap_or(parts.tool.full_name());
            let until = record.changed_at.map_or(until(now), until);
            Some(bars(record.key, tool, until)?.unreadable())
        })
    });
    if barred.is_none() {
        // A record that went from its claim to its end has no third version; others are read with who settled them.
        let mut ended = Vec::new();
        for params in recorded {
            ended.extend(listed(Some(params), StateFilter::Any).await?.records);
        }
        ended.retain(|it| it.state == RecordState::Done && it.version > 2);
        for ran in ended.iter().filter_map(barred_by).filter_map(|it| it.call) {
            let record = records.record(&ran).await.map_err(not_compared)?;
            let by_hand = record.and_then(|it| it.execution?.attempts.pop()?.settlement);
            if by_hand.is_some() && (call.is_identified() || learns(ran)) {
                return Err(Failure::RAN_BEFORE);
            }
        }
    }
    Ok(barred)
}
