//! The key by which a server recognizes a call, as its record notes it.
use std::{fmt, time::Duration};
use tool_reliability::idempotency::DedupeRecord;
use tr_core::printable;

/// A server's key of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerKey {
    text: Box<str>,
    /// When it was first sent, in milliseconds since 1970.
    since: u64,
}

impl fmt::Display for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.since, printable(&self.text))
    }
}

impl ServerKey {
    /// The name of a record's note of it.
    pub(crate) const NOTED: &str = "server_key";

    pub(crate) const fn new(text: Box<str>, since: u64) -> Self {
        Self { text, since }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The key of this record's call.
    pub(crate) fn of(record: &DedupeRecord) -> Option<Self> {
        let (since, text) = record.request.about.get(Self::NOTED)?.split_once(' ')?;
        Some(Self { text: text.into(), since: since.parse().ok()? })
    }

    /// Whether the server may be taken to know it still.
    pub(crate) fn is_valid(&self, ttl: Duration, now: u64) -> bool {
        u128::from(now.saturating_sub(self.since)) < ttl.as_millis()
    }
}
