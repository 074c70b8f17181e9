//! JSON-RPC and MCP codes, and MCP results that report an error.
use super::{Finding, Kind, message};
use crate::{Ran, Verdict};

/// What a code means by itself.
pub(super) enum Code {
    /// Whatever the message says.
    Certain(Kind),
    /// Unless the message says more.
    Otherwise(Kind),
}

pub(super) const fn code(code: i64) -> Option<Code> {
    Some(match code {
        -32_700 | -32_600 | -32_602 => Code::Certain(Kind::InvalidInput),
        -32_601 => Code::Certain(Kind::Unsupported),
        -32_800 => Code::Certain(Kind::Cancelled),
        -32_042 => Code::Certain(Kind::PreconditionFailed),
        // Implementations use these for whatever they like.
        -32_001 => Code::Otherwise(Kind::Timeout),
        -32_002 => Code::Otherwise(Kind::NotFound),
        -32_603 | -32_099..=-32_000 => Code::Otherwise(Kind::ServerError),
        _ => return None,
    })
}

/// Classifies a JSON-RPC error response.
///
/// -32700 and -32600…-32602 are permanent, -32800 is a cancellation. -32603 and -32000…-32099 say
/// too little: the message decides. No code and no message says that the tool did not run.
#[must_use]
pub fn json_rpc(code: i64, message: &str) -> Finding<'static> {
    let otherwise = match self::code(code) {
        Some(Code::Certain(kind)) => return Finding::of(kind),
        Some(Code::Otherwise(kind)) => kind,
        None => Kind::Unclassified,
    };
    match message::scan(message).finding() {
        Some(found) => found,
        None => Finding::of(otherwise),
    }
}

/// Classifies the text of an MCP result with `isError: true`.
///
/// Only a text that speaks of something transient is transient; everything else is for the
/// model. The tool did answer, so nothing here is [`Ran::No`]: what fails for good has ended
/// ([`Ran::Yes`]), and what fails for a moment may have done its work in part
/// ([`Ran::Unknown`]), so that it is repeated only where a repeat does no harm.
#[must_use]
pub fn mcp_is_error(text: &str) -> Finding<'static> {
    let mut found = message::scan(text).finding().unwrap_or(Finding::of(Kind::ToolError));
    found.end.ran = if found.end.verdict.is_transient() {
        Ran::Unknown
    } else {
        found.end.verdict = Verdict::Permanent;
        Ran::Yes
    };
    found
}
