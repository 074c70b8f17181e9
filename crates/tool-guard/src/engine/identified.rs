//! Calls under the key of another: what the caller learns of the call before.
use super::{failure::Conflict, tool::ServerLink};
use crate::terminal::short_id;
use serde_json::value::RawValue;
use std::{collections::BTreeMap, fmt};
use tool_reliability::idempotency::{DedupeRecord, RecordState};
use tr_core::{
    BoxError, ToolCall, ToolOutcome,
    canonical::{Digest, Key, Rules},
    classify, code, printable,
};

/// What is noted of a record's call: the digest of each of its params.
pub(crate) const PARAMS: &str = "params";

/// The call before with the same identity, if it has other params.
#[derive(Debug)]
struct Before {
    key: Key,
    state: RecordState,
    /// The names of the params that differ, if the params that say what is wanted recognize the call; none of another
    /// caller's call.
    differ: Vec<String>,
}

/// Runs a call with this key, and adds what is to be said of the one before.
pub(super) async fn run(
    link: &ServerLink,
    key: Key,
    call: &ToolCall,
    run: impl Future<Output = Result<ToolOutcome, BoxError>>,
) -> Result<ToolOutcome, BoxError> {
    let mut before = if call.is_identified() { Before::of(link, call, key).await } else { None };
    let end = run.await;
    if before.is_none() && is_conflict(&end) {
        // It has begun since, or is another caller's.
        let record = link.record(&key).await;
        let unlike = |it: DedupeRecord| Before { key, state: it.state, differ: Vec::new() };
        before = Before::of(link, call, key).await.or_else(|| record.map(unlike));
    }
    match before {
        Some(before) => before.told(end),
        None => end,
    }
}

fn is_conflict(end: &Result<ToolOutcome, BoxError>) -> bool {
    let code = |error: &BoxError| classify::error(&**error).end.code == code::IDEMPOTENCY_CONFLICT;
    end.as_ref().is_err_and(code)
}

impl Before {
    /// The call before this one, which has this key.
    async fn of(link: &ServerLink, call: &ToolCall, key: Key) -> Option<Self> {
        let DedupeRecord { state, request, .. } = link.record(&key).await?;
        let theirs: BTreeMap<_, _> =
            request.about.get(PARAMS)?.split(' ').filter_map(|it| it.rsplit_once('=')).collect();
        let ours = digests(call.parts().params.get());
        let names = theirs.keys().copied().chain(ours.keys().map(String::as_str));
        let mut differ: Vec<String> = names
            .filter(|name| theirs.get(name).copied() != ours.get(*name).map(String::as_str))
            .map(str::to_owned)
            .collect();
        differ.sort_unstable();
        differ.dedup();
        (!differ.is_empty()).then_some(Self { key, state, differ })
    }

    /// The end of this call, with what is to be said of the one before.
    fn told(self, mut end: Result<ToolOutcome, BoxError>) -> Result<ToolOutcome, BoxError> {
        if is_conflict(&end) {
            return Err(Conflict::new(format!("{self}; this one did not run")).into());
        }
        if let Ok(outcome) = &mut end
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
