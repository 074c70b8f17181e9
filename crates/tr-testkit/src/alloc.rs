//! Counts the allocations that a piece of code makes.
//!
//! # When to use
//!
//! In a test or benchmark that asserts "this path allocates nothing". The count is per thread, so
//! concurrent tests do not disturb it; allocations of the measured code on other threads are not
//! counted.
//!
//! # Example
//!
//! The allocator is installed once per test binary:
//!
//! ```
//! use tr_testkit::alloc::{self, CountingAllocator};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! assert_eq!(alloc::count(|| 1 + 1).count, 0);
//!
//! let boxed = alloc::count(|| Box::new([0_u8; 100]));
//! assert_eq!((boxed.count, boxed.bytes), (1, 100));
//! ```
//!
//! A future is counted while it is polled, not while it waits:
//!
//! ```
//! # use tr_testkit::alloc::{self, CountingAllocator};
//! # #[global_allocator]
//! # static ALLOCATOR: CountingAllocator = CountingAllocator;
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let (answer, allocations) = alloc::count_polls(async { 42 }).await;
//! assert_eq!((answer, allocations.count), (42, 0));
//! # }
//! ```
//!
//! # Panics
//!
//! Both functions panic where the allocator is not installed, instead of returning zero.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::poll_fn,
    hint::black_box,
    ops::Sub,
    pin::pin,
};

/// How much was allocated. Growing a buffer counts as one allocation of its new size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Number of allocations.
    pub count: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

thread_local! {
    // Const and without a destructor, so that accessing it never allocates, at any point of a
    // thread's life.
    static HERE: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
    static FREED: Cell<u64> = const { Cell::new(0) };
    /// The most that was [live](live).
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The bytes that this thread has allocated minus those that it has freed; negative where it frees
/// allocations of other threads.
fn live() -> i64 {
    HERE.get().bytes.cast_signed() - FREED.get().cast_signed()
}

/// The system's allocator, counting.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

impl CountingAllocator {
    fn note(size: usize) {
        let Allocations { count, bytes } = HERE.get();
        HERE.set(Allocations { count: count + 1, bytes: bytes + size as u64 });
        PEAK.set(PEAK.get().max(live()));
    }

    fn note_freed(size: usize) {
        FREED.set(FREED.get() + size as u64);
    }
}

// SAFETY: every method hands its arguments to `System` unchanged and returns what it returns; counting touches only
// a thread-local cell, so it neither allocates nor unwinds.
#[allow(
    unsafe_code,
    reason = "an allocator cannot be written without it; this one only counts and delegates"
)]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::note(new_size);
        Self::note_freed(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`; the block came from `System`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        Self::note_freed(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`; the block came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Counts what `work` allocates on this thread. Its result is dropped after the count.
pub fn count<T>(work: impl FnOnce() -> T) -> Allocations {
    require_installed();
    let before = HERE.get();
    let result = work();
    let made = HERE.get() - before;
    drop(result);
    made
}

/// The result of `work`, and the bytes that it has allocated on this thread and not freed: the size
/// of its result and its lasting effects.
pub fn kept<T>(work: impl FnOnce() -> T) -> (T, u64) {
    require_installed();
    let before = live();
    let result = work();
    (result, (live() - before).max(0).unsigned_abs())
}

/// The result of `work`, and the peak of the bytes that it has allocated on this thread. A growing
/// buffer counts with its old and its new size.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    require_installed();
    let before = live();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before).unsigned_abs())
}

/// The output of `future`, and what its polls allocate on the threads that poll it.
pub async fn count_polls<F: Future>(future: F) -> (F::Output, Allocations) {
    require_installed();
    let mut future = pin!(future);
    let mut made = Allocations::default();
    let output = poll_fn(|cx| {
        let before = HERE.get();
        let poll = future.as_mut().poll(cx);
        let more = HERE.get() - before;
        made = Allocations { count: made.count + more.count, bytes: made.bytes + more.bytes };
        poll
    })
    .await;
    (output, made)
}

fn require_installed() {
    let before = HERE.get();
    drop(black_box(Box::new(1_u8)));
    assert_ne!(
        HERE.get(),
        before,
        "nothing is counted: install `CountingAllocator` as this binary's `#[global_allocator]`"
    );
}

impl Sub for Allocations {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { count: self.count - earlier.count, bytes: self.bytes - earlier.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests of the library do not install it.
    #[test]
    #[should_panic(expected = "nothing is counted: install `CountingAllocator`")]
    fn counting_without_the_allocator_panics() {
        let _ = count(|| ());
    }
}
