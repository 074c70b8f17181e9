//! Without the feature `encryption`: there is no key, so all records are plain.
use super::Unreadable;

/// A key without values.
#[derive(Clone, Debug)]
pub(crate) enum SealingKey {}

impl SealingKey {
    pub(super) const fn opens_plain_at(&self, _: u64) -> bool {
        match *self {}
    }

    pub(super) const fn name(&self, _: &str) -> String {
        match *self {}
    }

    pub(super) const fn seal(&self, _: &[u8], _: &[u8], _: &[u8]) -> Vec<u8> {
        match *self {}
    }

    pub(super) fn open<'s>(
        &self,
        _: &'s [u8],
        _: usize,
        _: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<(&'s [u8], Vec<u8>), Unreadable> {
        match *self {}
    }
}
