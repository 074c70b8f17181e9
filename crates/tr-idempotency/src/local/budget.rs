//! The budget for the bytes of responses that all records of a process keep.
use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Smaller responses are bounded by the number of records, and are not counted.
const SMALL: usize = 1024;

/// The bytes that are kept, and their limit.
#[derive(Debug)]
pub(crate) struct Budget {
    kept: AtomicUsize,
    most: usize,
    most_of_one: usize,
}

/// Some of the budget's bytes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(super) bytes: NonZeroUsize,
    budget: Arc<Budget>,
}

/// Whether a response may be kept.
#[derive(Debug)]
pub(crate) enum Reservation {
    /// It may.
    Fits(Option<Reserved>),
    /// Only if other responses of this many bytes are dropped.
    Full(usize),
    /// It is too large by itself.
    TooLarge,
}

impl Budget {
    pub(crate) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { kept: AtomicUsize::new(0), most, most_of_one })
    }

    /// Reserves the bytes of a response.
    #[inline]
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Reservation {
        if bytes > self.most_of_one.min(self.most) {
            return Reservation::TooLarge;
        }
        match NonZeroUsize::new(bytes) {
            Some(bytes) if bytes.get() >= SMALL => self.take(bytes),
            _ => Reservation::Fits(None),
        }
    }

    #[cold]
    fn take(self: &Arc<Self>, bytes: NonZeroUsize) -> Reservation {
        let add = |kept: usize| Some(kept + bytes.get()).filter(|kept| *kept <= self.most);
        match self.kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Reservation::Fits(Some(Reserved { bytes, budget: self.clone() })),
            Err(_) => Reservation::Full(bytes.get()),
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.kept.fetch_sub(self.bytes.get(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_comes_back() {
        let budget = Budget::new(10_000, 5_000);
        assert!(matches!(budget.reserve(5_001), Reservation::TooLarge));
        assert!(matches!(budget.reserve(SMALL - 1), Reservation::Fits(None)));
        let Reservation::Fits(first) = budget.reserve(5_000) else { panic!() };
        let Reservation::Fits(second) = budget.reserve(5_000) else { panic!() };
        assert!(matches!(budget.reserve(SMALL), Reservation::Full(SMALL)));
        drop(first);
        assert!(matches!(budget.reserve(SMALL), Reservation::Fits(Some(_))));
        drop(second);
        assert_eq!(budget.kept.load(Ordering::Relaxed), 0);
    }
}
