//! Why a failure is classified as it is: sentences that a turn's trace shows.

/// For timeouts.
pub const TIMEOUT: &str = "Timeout is temporary";
/// For timeouts of the network.
pub const NETWORK_TIMEOUT: &str = "Network timeouts are temporary";
/// For rate limits.
pub const RATE_LIMIT: &str = "Rate limits reset over time";
/// For input that the callee refuses.
pub const INVALID_INPUT: &str = "Invalid input won't change on retry";
/// For credentials and permissions that the callee refuses.
pub const AUTH: &str = "Auth won't change on retry";
/// For a verdict that the tool's manifest gave.
pub const MANIFEST: &str = "Tool manifest override respected";
/// Why a breaker does not count permanent failures.
pub const NOT_COUNTED: &str = "Permanent errors don't indicate service issues";
/// For a failure of the callee.
pub const SERVER: &str = "Server failures are temporary";
/// For a failure that the tool itself calls final.
pub const NOT_RETRYABLE: &str = "The tool says that a retry is no use";
/// For a failure that the tool itself calls temporary.
pub const RETRYABLE: &str = "The tool says that a retry may help";
/// For a permanent failure of which no more is known.
pub const PERMANENT: &str = "Permanent errors won't change on retry";
/// For a failure that no table knows.
pub const UNCLASSIFIED: &str = "Unknown errors may be temporary";
