//! The bytes that are held for clients: bodies that are being read or carried out, and answers that are not read yet.
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a body may hold whatever others hold; most are shorter.
const SHARE: usize = 64 * 1024;
/// What all longer ones together may hold. One that is longer still passes alone.
const ALL: usize = 256 * 1024 * 1024;

/// The budget of all connections.
static BUDGET: Budget = Budget::new(ALL);

/// Too much is held for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

#[derive(Debug)]
struct Budget {
    all: usize,
    held: AtomicUsize,
}

impl Budget {
    const fn new(all: usize) -> Self {
        Self { all, held: AtomicUsize::new(0) }
    }
}

/// What one body holds.
#[derive(Debug)]
pub(crate) struct Held {
    budget: &'static Budget,
    bytes: usize,
}

impl Held {
    /// Nothing yet.
    pub(crate) const fn nothing() -> Self {
        Self { budget: &BUDGET, bytes: 0 }
    }

    /// Holds so many bytes in all.
    ///
    /// # Errors
    /// If others hold too much; what is held stays.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes <= SHARE || bytes <= self.bytes {
            return Ok(());
        }
        let Budget { all, held } = self.budget;
        let more = |held: usize| {
            let sum = held.saturating_add(bytes - self.bytes);
            (held == self.bytes || sum <= *all).then_some(sum)
        };
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| NoRoom)?;
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
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
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
        static SMALL: Budget = Budget::new(10 * SHARE);
        let none = || Held { budget: &SMALL, bytes: 0 };
        let held = |bytes: usize| {
            let mut held = none();
            held.grow(bytes).map(|()| held)
        };
        let mut first = held(4 * SHARE).unwrap();
        let second = held(5 * SHARE).unwrap();
        assert_eq!(held(2 * SHARE).unwrap_err(), NoRoom);
        assert_eq!(held(SHARE).unwrap().bytes, 0);
        assert_eq!((first.grow(6 * SHARE), first.bytes), (Err(NoRoom), 4 * SHARE));
        first.grow(5 * SHARE).unwrap();
        drop(first);
        // A part of the bytes holds the whole.
        let bytes = second.with(Bytes::from(vec![7; 5 * SHARE]));
        let part = bytes.slice(3..4);
        drop(bytes);
        assert_eq!((&part[..], SMALL.held.load(Ordering::Relaxed)), (&[7][..], 5 * SHARE));
        drop(part);
        assert_eq!(SMALL.held.load(Ordering::Relaxed), 0);
        // What is longer than the budget passes alone.
        let long = held(20 * SHARE).unwrap();
        assert_eq!(held(2 * SHARE).unwrap_err(), NoRoom);
        drop(long);
        assert!(held(2 * SHARE).is_ok());
    }
}
