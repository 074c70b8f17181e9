//! Classifies a [`ToolError`], by its code and message and by what its tool declares.
use super::{
    Finding, Kind, errno,
    finding::Structured,
    grpc, http, message, reason, rpc_code,
    scan::{Rank, Scan},
    sqlstate,
};
use crate::{Ran, ToolError, ToolManifest, Verdict, code::IDEMPOTENCY_IN_FLIGHT};

/// Codes that say nothing: the kind's own is put in their place.
const EMPTY: [&str; 7] =
    ["", "error", "err", "tool_error", "unknown", "unknown_error", "unclassified"];

/// Classifies a failure that a tool reported.
///
/// The tool has answered, so its failure is final, and the tool has run, unless the error says otherwise: a
/// verdict that it was given earlier stands. Else `retryable: false` is final, and means that the tool has run
/// whatever the message says, while its code does not name a failure that leaves that open, such as `timeout`;
/// `retryable: true` makes it transient; else what its code and its message are known to mean decides, the
/// stronger of the two. The code stays the tool's own unless it says nothing. What the error says of
/// [`ran`](ToolError::ran) stands unless it is [`Ran::Unknown`].
///
/// ```
/// use tr_core::{Ran, ToolError, Verdict, classify};
///
/// let sold_out = ToolError::new("business_rule", "sold out");
/// let found = classify::tool_error(&sold_out);
/// assert_eq!((found.end.verdict, found.end.ran), (Verdict::Permanent, Ran::Yes));
///
/// let away = ToolError::new("upstream", "connection reset by peer");
/// let found = classify::tool_error(&away);
/// assert_eq!((found.end.verdict, found.end.ran), (Verdict::TRANSIENT, Ran::Unknown));
/// ```
#[must_use]
pub fn tool_error(error: &ToolError) -> Finding<'_> {
    if let Some(verdict) = error.verdict {
        return Finding::stamped(error, verdict);
    }
    let mut found: Finding<'_> = scan(error).finding().unwrap_or(Finding::of(Kind::ToolError));
    match error.retryable {
        Some(false) => {
            if found.end.verdict != Verdict::Permanent {
                found = found.overruled(Verdict::Permanent, reason::NOT_RETRYABLE);
            }
            let by_code = code(&error.code).and_then(Scan::finding).map(|named| named.end.ran);
            found.end.ran = by_code.filter(|ran| *ran == Ran::Unknown).unwrap_or(Ran::Yes);
        }
        Some(true) if !found.end.verdict.is_transient() => {
            found = found.overruled(Verdict::TRANSIENT, reason::RETRYABLE);
        }
        _ => {}
    }
    if error.ran != Ran::Unknown {
        found.end.ran = error.ran;
    }
    if !EMPTY.iter().any(|empty| error.code.eq_ignore_ascii_case(empty)) {
        found = found.structured(Structured::Code);
        found.end.code = &error.code;
    }
    // The key in flight belongs to a call that the tool made: a repeat of this call does not join
    // that one, so it is not retriable.
    let is_its_own_key = found.end.code == IDEMPOTENCY_IN_FLIGHT;
    found.end.exhausted |= error.exhausted || is_its_own_key;
    found
}

/// What the error's code and message mean.
fn scan(error: &ToolError) -> Scan {
    code(&error.code).unwrap_or_default().or(message::scan(&error.message))
}

/// The JSON-RPC code of the error: its own, or that of the error object that a client of MCP keeps in its
/// details.
pub(crate) fn json_rpc_code(error: &ToolError) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Came {
        code: i64,
    }

    let came = || serde_json::from_str(error.details.as_ref()?.get()).ok();
    let code = error.code.parse().ok().or_else(|| came().map(|Came { code }| code));
    code.filter(|code| *code < 0)
}

/// Classifies `error` under the manifest of its tool, and writes verdict and
/// [`ran`](ToolError::ran) into it, so that it is classified only once. Returns the reason.
///
/// Meant for the adapter in which the failure first comes to light: the layers see no manifest
/// when they look at an outcome.
///
/// ```
/// use tr_core::{ToolError, ToolManifest, Verdict, classify};
///
/// let mut tool = ToolManifest::new("custom_api");
/// tool.classification = vec![("503".into(), Verdict::Permanent)];
/// let mut error = ToolError::new("", "Service unavailable (503)");
/// assert_eq!(classify::stamp(&mut error, Some(&tool)), "Tool manifest override respected");
/// assert_eq!(error.verdict, Some(Verdict::Permanent));
/// assert_eq!(&*error.code, "service_unavailable");
/// ```
pub fn stamp(error: &mut ToolError, manifest: Option<&ToolManifest>) -> &'static str {
    let found = tool_error(error);
    let found = manifest.map_or(found, |manifest| found.with_manifest(manifest));
    let (end, reason) = (found.end, found.reason());
    let better = (*end.code != *error.code).then(|| end.code.into());
    (error.verdict, error.ran, error.exhausted) = (Some(end.verdict), end.ran, end.exhausted);
    if let Some(code) = better {
        error.code = code;
    }
    reason
}

impl Finding<'_> {
    /// The same under what the tool's manifest says of such errors; the first entry that
    /// matches decides.
    ///
    /// An entry matches the error's own code, the stable code of what the tables found, or the
    /// HTTP status that the error has or names: `503` matches a response with that status and
    /// the text `Service unavailable (503)`, also where the error was classified before. An entry of
    /// [`not_run`](ToolManifest::not_run) matches what the error itself has, and no text.
    #[must_use]
    pub fn with_manifest(self, manifest: &ToolManifest) -> Self {
        if self.end.verdict.is_success() {
            return self;
        }
        let entries = &manifest.classification;
        // What was written into an error before does not hide its status.
        let stamped = self.stamped.filter(|_| !entries.is_empty());
        let named = stamped.and_then(|error| scan(error).finding());
        let rpc = stamped.and_then(json_rpc_code);
        let is = |key: &str| {
            self.is(key)
                || named.is_some_and(|named| named.is(key))
                || rpc.is_some_and(|code| key.parse() == Ok(code))
        };
        let entry = entries.iter().find(|(key, _)| is(key));
        let mut found =
            entry.map_or(self, |(_, verdict)| self.overruled(*verdict, reason::MANIFEST));
        if manifest.not_run.iter().any(|key| self.says(key)) {
            found = found.overruled(Verdict::TRANSIENT, reason::MANIFEST);
            found.end.ran = Ran::No;
        }
        found
    }
}

/// Classifies a JSON-RPC error response.
///
/// -32700 and -32600…-32602 are permanent, -32800 is a cancellation. -32603 and -32000…-32099 say
/// too little: the message decides. No code and no message says that the tool did not run.
#[must_use]
pub fn json_rpc(code: i64, message: &str) -> Finding<'static> {
    let (rank, kind) = rpc_code::code(code).unwrap_or((Rank::Hint, Kind::Unclassified));
    let said = if rank == Rank::Exact { None } else { message::scan(message).finding() };
    said.unwrap_or(Finding::of(kind))
}

/// Classifies the text of an MCP result with `isError: true`.
///
/// Only a text that speaks of something transient is transient; everything else is for the
/// model. The tool did answer, so nothing here is [`Ran::No`]: what fails for good has ended
/// ([`Ran::Yes`]), and what fails for a moment, or was cancelled, may have done its work in part
/// ([`Ran::Unknown`]), so that it is repeated only where a repeat does no harm.
#[must_use]
pub fn mcp_is_error(text: &str) -> Finding<'static> {
    let mut found = message::scan(text).finding().unwrap_or(Finding::of(Kind::ToolError));
    found.end.ran = match found.end.verdict {
        Verdict::Transient { .. } | Verdict::Cancelled => Ran::Unknown,
        _ => Ran::Yes,
    };
    if !found.end.verdict.is_transient() {
        found.end.verdict = Verdict::Permanent;
    }
    found
}

/// What a code by itself means.
fn code(code: &str) -> Option<Scan> {
    let code = code.trim_ascii();
    let exact = |kind| Some(Scan::of(Rank::Exact, kind, None));
    if EMPTY.contains(&code) {
        return None;
    }
    if let Some(kind) = Kind::from_code(code) {
        return exact(kind);
    }
    if let Some(status) = http::from_word(code) {
        let (kind, _) = http::status(status)?;
        return Some(Scan::of(Rank::Named, kind, Some(status)));
    }
    if let Ok(number) = code.parse::<i64>() {
        return match rpc_code::code(number) {
            Some((rank, kind)) => Some(Scan::of(rank, kind, None)),
            // A positive number may be anything: a row, a version, an exit code.
            None if number < 0 => exact(errno::number(i32::try_from(number).ok()?)?),
            None => sqlstate::kind(code).and_then(exact),
        };
    }
    if let Some((_, kind)) = grpc::from_name(code) {
        return Some(Scan::of(Rank::Named, kind, None)).filter(|_| kind != Kind::Unclassified);
    }
    match sqlstate::kind(code) {
        Some(kind) => exact(kind),
        None => Some(message::scan(code).or(message::scan_code(code))),
    }
}
