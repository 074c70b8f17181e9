//! JSON-RPC and MCP codes.
use super::{Kind, scan::Rank};

/// What a code means by itself: [exactly](Rank::Exact), whatever the message says, or as a
/// [hint](Rank::Hint), unless the message says more.
pub(super) const fn code(code: i64) -> Option<(Rank, Kind)> {
    Some(match code {
        -32_700 | -32_600 | -32_602 => (Rank::Exact, Kind::InvalidInput),
        -32_601 => (Rank::Exact, Kind::Unsupported),
        -32_800 => (Rank::Exact, Kind::Cancelled),
        -32_042 => (Rank::Exact, Kind::PreconditionFailed),
        // Implementations use these for whatever they like.
        -32_001 => (Rank::Hint, Kind::Timeout),
        -32_002 => (Rank::Hint, Kind::NotFound),
        -32_603 | -32_099..=-32_000 => (Rank::Hint, Kind::ServerError),
        _ => return None,
    })
}
