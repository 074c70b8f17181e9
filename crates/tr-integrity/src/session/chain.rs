//! A hash of every prefix of a session.
use blake3::{Hash, Hasher};
use tr_transcript::Message;

/// A hash of every prefix: each message's hash covers the hash before it and its own bytes, so an
/// append and the check of a prefix take constant time.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain(Vec<Hash>);

impl Chain {
    pub(super) fn push(&mut self, message: &Message) {
        let mut hasher = Hasher::new();
        hasher.update(self.prefix(self.0.len()).as_bytes());
        hasher.update(message.raw().as_bytes());
        self.0.push(hasher.finalize());
    }

    /// The hash of the first `len` messages; zeros for none.
    pub(super) fn prefix(&self, len: usize) -> Hash {
        len.checked_sub(1).map_or(Hash::from_bytes([0; 32]), |last| self.0[last])
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}
