//! What the caller knows of a call.
use std::time::Duration;

/// What the caller knows of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallHints {
    /// Never retry a mutating call whose attempt may have run, whatever else says so.
    pub safety_critical: bool,
    /// A repeat is safe even if an earlier attempt ran.
    pub expected_retry_safe: bool,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// The caller accepts a response in chunks: `Envelopes::answers` gives them, and the tool may look.
    pub prefer_streaming: bool,
    /// Under which a cache may keep the answer of a read. For the tool to look at: no layer caches.
    pub cache_key: Option<Box<str>>,
}
