//! Assigns threads to stripes, so that counters of different threads use different cache lines.
use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Stripes per counter.
pub const STRIPES: usize = 8;

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// This thread's stripe, below [`STRIPES`].
#[inline]
pub fn stripe() -> usize {
    MINE.with(|mine| match mine.get() {
        usize::MAX => {
            let stripe = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
            mine.set(stripe);
            stripe
        }
        stripe => stripe,
    })
}
