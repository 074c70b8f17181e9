//! A response that is recorded as JSON.
use serde::Serialize;
use std::io;

/// A response that is recorded as JSON: what a policy with
/// [`stored_as_json`](super::PolicyExt::stored_as_json) keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsJson<T>(pub T);

impl<T: Serialize> AsJson<T> {
    /// How many bytes of JSON it is; what cannot be written as JSON counts up to its fault.
    pub(super) fn size(&self) -> usize {
        let mut bytes = ByteCount(0);
        let _ = serde_json::to_writer(&mut bytes, &self.0);
        bytes.0
    }
}

/// Counts what is written.
struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        self.0 += written.len();
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
