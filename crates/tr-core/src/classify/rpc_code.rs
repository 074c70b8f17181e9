//! JSON-RPC and MCP codes.
use super::Kind;

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
