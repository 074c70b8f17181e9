//! Without the feature `encryption`: there is no key, so all records are plain.
use super::Unreadable;
use tr_core::canonical::{Digest, Key};

/// A key without values.
#[derive(Clone, Debug)]
pub(crate) enum SealingKey {}

/// Names without values.
#[derive(Debug)]
pub(crate) enum Names {}

impl SealingKey {
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

    pub(crate) const fn names(&self) -> Names {
        match *self {}
    }

    pub(crate) const fn mark(&self, _: &Names) -> Vec<u8> {
        match *self {}
    }

    pub(crate) const fn open_mark(&self, _: &[u8]) -> Result<(Names, bool), String> {
        match *self {}
    }
}

impl Names {
    pub(crate) const fn key(&self, _: &Key) -> Key {
        match *self {}
    }

    pub(crate) const fn key_of(&self, _: &Key) -> Key {
        match *self {}
    }

    pub(crate) const fn digest(&self, _: &Digest) -> Digest {
        match *self {}
    }

    pub(crate) const fn digest_of(&self, _: &Digest) -> Digest {
        match *self {}
    }
}
