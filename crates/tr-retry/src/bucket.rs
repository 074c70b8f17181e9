//! The arithmetic of a retry budget: a token bucket that success fills.
use crate::sync::{AtomicU64, Ordering};

/// The cost of one retry in the bucket's unit, a millionth of a token.
pub(crate) const TOKEN: u64 = 1_000_000;

/// A counter on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct PaddedCounter(AtomicU64);

/// A token bucket, filled by success.
///
/// A success only increments the counter of its stripe; taking a token first collects the counters.
/// So a success needs neither the clock nor the balance, and no more tokens are granted than the
/// initial balance and the successes pay for.
#[derive(Debug)]
pub(crate) struct Bucket<const N: usize> {
    successes: [PaddedCounter; N],
    balance: AtomicU64,
    per_success: u64,
    capacity: u64,
}

impl<const N: usize> Bucket<N> {
    /// A full bucket; both numbers are millionths of a token.
    pub(crate) fn new(per_success: u64, capacity: u64) -> Self {
        Self {
            successes: std::array::from_fn(|_| PaddedCounter(AtomicU64::new(0))),
            balance: AtomicU64::new(capacity),
            per_success,
            capacity,
        }
    }

    #[inline]
    pub(crate) fn success(&self, stripe: usize) {
        self.successes[stripe].0.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&self) -> bool {
        self.collect();
        let take = |balance: u64| balance.checked_sub(TOKEN);
        self.balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Returns an unused token.
    pub(crate) fn put_back(&self) {
        self.pay_in(TOKEN);
    }

    /// The balance in millionths of a token.
    pub(crate) fn balance(&self) -> u64 {
        self.collect();
        self.balance.load(Ordering::Relaxed)
    }

    fn collect(&self) {
        for PaddedCounter(successes) in &self.successes {
            if successes.load(Ordering::Relaxed) > 0 {
                let successes = successes.swap(0, Ordering::Relaxed);
                self.pay_in(successes.saturating_mul(self.per_success));
            }
        }
    }

    fn pay_in(&self, amount: u64) {
        let pay_in = |balance: u64| Some(balance.saturating_add(amount).min(self.capacity));
        // Never fails: the closure always has a new value.
        let _ = self.balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay_in);
    }
}
