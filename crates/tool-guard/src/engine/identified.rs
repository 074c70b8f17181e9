//! Calls under the key of another: what the caller learns of the call before.
use super::{
    failure::Conflict,
    identity::{self, with_credential},
    tool::{ServerLink, ServerTool},
};
use crate::terminal::short_id;
use serde_json::value::RawValue;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use tool_reliability::{
    Guarded,
    idempotency::{DedupeRecord, RecordState},
};
use tower::ServiceExt as _;
use tr_core::{
    BoxError, DedupeKey, ToolCall, ToolOutcome,
    canonical::{Digest, Key, Rules},
    classify, code, printable,
};

/// What is noted of a record's call: the digest of each of its params.
pub(crate) const PARAMS: &str = "params";

/// The call before with the same key.
#[derive(Debug)]
struct Before {
    key: Key,
    state: RecordState,
    /// The names of the params that differ, if the params that say what is wanted recognize the call; none of another
    /// caller's call.
    differ: Vec<String>,
}

/// The record of the call before with this key. If that had another credential of its caller's, the call is the same with
/// that one.
pub(super) async fn before(
    link: &ServerLink,
    key: Key,
    call: &mut ToolCall,
) -> Option<DedupeRecord> {
    let has_key = call.manifest().is_some_and(|tool| tool.server_key.is_some());
    if !call.is_identified() && link.others.is_empty() && !has_key {
        return None;
    }
    let record = link.record(&key).await?;
    let of = |other| with_credential(identity::digest(call), other);
    let mut digests = link.others.iter().map(of);
    if let Some(digest) = digests.find(|it| it.to_string() == record.request.params_digest) {
        call.parts_mut().idempotency.id = Some(DedupeKey { key, digest });
    }
    Some(record)
}

/// Runs a call with this key, and adds what is to be said of the one before.
pub(super) async fn run(
    link: &ServerLink,
    key: Key,
    (call, mut record): (ToolCall, Option<DedupeRecord>),
    stack: Guarded<ServerTool>,
) -> Result<ToolOutcome, BoxError> {
    let params = call.parts().params.clone();
    let end = stack.oneshot(call).await;
    if record.is_none() && is_conflict(&end) {
        // It has begun since, or is another caller's.
        record = link.record(&key).await;
    }
    match record {
        Some(record) => Before::of(&record, key, params.get()).told(end),
        None => end,
    }
}

fn is_conflict(end: &Result<ToolOutcome, BoxError>) -> bool {
    let code = |error: &BoxError| classify::error(&**error).end.code == code::IDEMPOTENCY_CONFLICT;
    end.as_ref().is_err_and(code)
}

impl Before {
    /// The call before one with these params, by its record.
    fn of(record: &DedupeRecord, key: Key, params: &str) -> Self {
        let noted = record.request.about.get(PARAMS).map_or("", |it| it);
        let theirs: BTreeMap<_, _> =
            noted.split(' ').filter_map(|it| it.rsplit_once('=')).collect();
        let ours = if theirs.is_empty() { BTreeMap::new() } else { digests(params) };
        let names = theirs.keys().copied().chain(ours.keys().map(String::as_str));
        let differ: BTreeSet<&str> = names
            .filter(|name| theirs.get(name).copied() != ours.get(*name).map(String::as_str))
            .collect();
        let differ = differ.into_iter().map(str::to_owned).collect();
        Self { key, state: record.state, differ }
    }

    /// The end of this call, with what is to be said of the one before.
    fn told(self, mut end: Result<ToolOutcome, BoxError>) -> Result<ToolOutcome, BoxError> {
        if is_conflict(&end) {
            return Err(Conflict::new(format!("{self}; this one did not run")).into());
        }
        if let Ok(outcome) = &mut end
            && !self.differ.is_empty()
            && self.state == RecordState::Failed
            && !outcome.from_cache()
        {
            outcome.parts_mut().notes.push(format!("[CORRECTED] {self}").into());
        }
        end
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            RecordState::Inflight => "is running",
            RecordState::Done => "is done",
            RecordState::Failed => "failed",
            RecordState::Cancelled => "was cancelled",
            _ => "may have run",
        };
        let record = short_id(&self.key);
        if self.differ.is_empty() {
            const OTHER: &str = "A call under this id with another credential or other arguments";
            return write!(f, "{OTHER} {state} [record {record}: ask the user]");
        }
        let differ = printable(&self.differ.join(", ")).into_owned();
        write!(f, "A call for the same thing with another {differ} {state} [record {record}]")
    }
}

/// What a record notes of these params.
pub(super) fn noted(params: &str) -> String {
    let digests = digests(params);
    let all: Vec<_> = digests.iter().map(|(name, digest)| format!("{name}={digest}")).collect();
    all.join(" ")
}

/// The beginning of the digest of each param.
fn digests(params: &str) -> BTreeMap<String, String> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(params).unwrap_or_default();
    let digest = |value: &RawValue| {
        let digest = Digest::of_params(format!("[{}]", value.get()), &Rules::exact());
        let digest = digest.unwrap_or_else(|_| Digest::of_bytes(value.get()));
        digest.to_string()[..8].to_owned()
    };
    // A name that could be taken for two is left out.
    let is_plain = |name: &str| !name.contains([' ', '=', '\n']);
    let members = members.into_iter().filter(|(name, _)| is_plain(name));
    members.map(|(name, value)| (name, digest(value))).collect()
}
