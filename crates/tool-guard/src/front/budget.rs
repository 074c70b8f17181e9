//! The bytes that are held for clients: bodies that are being read or carried out, and answers that are not read yet.
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a body may hold whatever others hold; most are shorter.
const SHARE: usize = 64 * 1024;
/// What all longer ones together may hold. One that is longer still passes alone.
const ALL: usize = 256 * 1024 * 1024;

/// What all connections hold.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Too much is held for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// What one body holds.
#[derive(Debug)]
pub(crate) struct Held {
    /// What all hold.
    all: &'static AtomicUsize,
    bytes: usize,
}

impl Held {
    /// Nothing yet.
    pub(crate) const fn nothing() -> Self {
        Self { all: &HELD, bytes: 0 }
    }

    /// Holds so many bytes in all.
    ///
    /// # Errors
    /// If others hold too much; what is held stays.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes <= SHARE || bytes <= self.bytes {
            return Ok(());
        }
        let more = |held: usize| {
            let sum = held.saturating_add(bytes - self.bytes);
            (held == self.bytes || sum <= ALL).then_some(sum)
        };
        self.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| NoRoom)?;
        self.bytes = bytes;
        Ok(())
    }

    /// The bytes, which hold it as long as a part of them lives.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        if self.bytes == 0 { bytes } else { Bytes::from_owner(Owner { bytes, _held: self }) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The bytes, within the budget as long as a part of them lives.
///
/// # Errors
/// If others hold too much.
pub(crate) fn hold(bytes: Bytes) -> Result<Bytes, NoRoom> {
    let mut held = Held::nothing();
    held.grow(bytes.len())?;
    Ok(held.with(bytes))
}

struct Owner {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ones_share_it_and_short_ones_pass() {
        static HERE: AtomicUsize = AtomicUsize::new(0);
        const PART: usize = ALL / 10;
        let none = || Held { all: &HERE, bytes: 0 };
        let held = |bytes: usize| {
            let mut held = none();
            held.grow(bytes).map(|()| held)
        };
        let mut first = held(4 * PART).unwrap();
        let second = held(5 * PART).unwrap();
        assert_eq!(held(2 * PART).unwrap_err(), NoRoom);
        assert_eq!(held(SHARE).unwrap().bytes, 0);
        assert_eq!((first.grow(6 * PART), first.bytes), (Err(NoRoom), 4 * PART));
        first.grow(5 * PART).unwrap();
        drop(first);
        // A part of the bytes holds the whole.
        let bytes = second.with(Bytes::from(vec![7; 5]));
        let part = bytes.slice(3..4);
        drop(bytes);
        assert_eq!((&part[..], HERE.load(Ordering::Relaxed)), (&[7][..], 5 * PART));
        drop(part);
        assert_eq!(HERE.load(Ordering::Relaxed), 0);
        // What is longer than the budget passes alone.
        let long = held(20 * PART).unwrap();
        assert_eq!(held(2 * PART).unwrap_err(), NoRoom);
        drop(long);
        assert!(held(2 * PART).is_ok());
    }
}
