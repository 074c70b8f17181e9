//! Calls under the key of another: what the caller learns of the call before.
use super::{
    failure::Failure,
    identity::{self, with_credential},
    tool::{ServerLink, ServerTool},
};
use crate::terminal::short_id;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use tool_reliability::{
    Guarded,
    idempotency::{DedupeRecord, RecordState},
};
use tower::ServiceExt as _;
use tr_core::{
    BoxError, DedupeKey, FailureInfo, Ran, ToolCall, ToolManifest, ToolOutcome, Verdict,
    canonical::{Canonicalizer, Digest, Key, Rules},
    classify, code, printable,
};

/// What is noted of a record's call: the digest of each of its params.
pub(crate) const PARAMS: &str = "params";

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
    let record = link.records.of(&key).await?;
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
    let (params, tool) = (call.parts().params.clone(), call.parts().manifest.clone());
    let mut end = stack.oneshot(call).await;
    if record.is_none() && is_conflict(&end) {
        // It has begun since, or is another caller's.
        record = link.records.of(&key).await;
    }
    let Some(record) = record else { return end };
    let differ = || differ(&record, params.get(), tool.as_deref());
    if is_conflict(&end) {
        let said = said(&record, key, differ().as_deref());
        let facts = FailureInfo::new(code::IDEMPOTENCY_CONFLICT, Ran::No, Verdict::Permanent);
        return Err(Failure::said(format!("{said}; this one did not run"), facts).into());
    }
    if let Ok(outcome) = &mut end
        && record.state == RecordState::Failed
        && !outcome.from_cache()
        && let Some(differ) = differ().filter(|differ| !differ.is_empty())
    {
        let said = said(&record, key, Some(&differ));
        outcome.parts_mut().notes.push(format!("[CORRECTED] {said}").into());
    }
    end
}

fn is_conflict(end: &Result<ToolOutcome, BoxError>) -> bool {
    let code = |error: &BoxError| classify::error(&**error).end.code == code::IDEMPOTENCY_CONFLICT;
    end.as_ref().is_err_and(code)
}

/// The names of the params in which the call of the record differs, if params say what is wanted. None differ if it
/// was another caller's.
fn differ(record: &DedupeRecord, params: &str, tool: Option<&ToolManifest>) -> Option<Vec<String>> {
    let noted = record.request.about.get(PARAMS)?;
    let theirs: BTreeMap<_, _> = noted.split(' ').filter_map(|it| it.rsplit_once('=')).collect();
    let ours = digests(params, tool);
    let names = theirs.keys().copied().chain(ours.keys().map(String::as_str));
    let differ: BTreeSet<&str> = names
        .filter(|name| theirs.get(name).copied() != ours.get(*name).map(String::as_str))
        .collect();
    Some(differ.into_iter().map(str::to_owned).collect())
}

/// What is said of the call before.
fn said(record: &DedupeRecord, key: Key, differ: Option<&[String]>) -> String {
    let state = match record.state {
        RecordState::Inflight => "is running",
        RecordState::Done => "is done",
        RecordState::Failed => "failed",
        RecordState::Cancelled => "was cancelled",
        _ => "may have run",
    };
    let ask = ": ask the user";
    let (what, ask) = match differ {
        None => ("A call under this id with another credential or other arguments".into(), ask),
        Some([]) => ("The same call with another credential or in another session".into(), ask),
        Some(differ) => {
            let differ = differ.join(", ");
            (format!("A call for the same thing with other arguments ({})", printable(&differ)), "")
        }
    };
    format!("{what} {state} [record {}{ask}]", short_id(&key))
}

/// What a record notes of a call's params.
pub(super) fn noted(call: &ToolCall) -> String {
    let digests = digests(call.parts().params.get(), call.manifest());
    let all: Vec<_> = digests.iter().map(|(name, digest)| format!("{name}={digest}")).collect();
    all.join(" ")
}

/// The beginning of the digest of each param that counts.
fn digests(params: &str, tool: Option<&ToolManifest>) -> BTreeMap<String, String> {
    let rules = tool.map_or(Rules::exact(), |tool| tool.rules.for_own_params());
    let mut counted = Vec::new();
    if Canonicalizer::new().write(params, &rules, &mut counted).is_err() {
        counted = params.into();
    }
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(&counted).unwrap_or_default();
    let digest = |value: &RawValue| Digest::of_bytes(value.get()).to_string()[..8].to_owned();
    // A name that could be taken for two is left out.
    let is_plain = |name: &str| !name.contains([' ', '=', '\n']);
    let members = members.into_iter().filter(|(name, _)| is_plain(name));
    members.map(|(name, value)| (name, digest(value))).collect()
}
