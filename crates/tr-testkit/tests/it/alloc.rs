//! The allocator counts what this thread allocates, and nothing else.

use std::{hint::black_box, thread};
use tr_testkit::alloc::{self, Allocations};

#[test]
fn it_counts_allocations_and_their_bytes() {
    let made = alloc::count(|| (black_box(vec![0_u8; 64]), black_box(Box::new(1_u64))));
    assert_eq!(made, Allocations { count: 2, bytes: 72 });
}

#[test]
fn growing_is_an_allocation_and_dropping_is_none() {
    let mut bytes: Vec<u8> = Vec::with_capacity(10);
    let made = alloc::count(|| bytes.reserve_exact(100));
    assert_eq!(made, Allocations { count: 1, bytes: 100 });
    assert_eq!(alloc::count(|| drop(bytes)), Allocations::default());
}

#[test]
fn a_peak_is_what_is_held_at_once() {
    let (_, peak) = alloc::peak(|| {
        drop(black_box(vec![0_u8; 1_000]));
        let held = black_box(vec![0_u8; 300]);
        drop(black_box(vec![0_u8; 400]));
        held
    });
    assert_eq!(peak, 1_000);
    let (_, peak) = alloc::peak(|| (black_box(vec![0_u8; 300]), black_box(vec![0_u8; 400])));
    assert_eq!(peak, 700);
}

#[test]
fn a_thread_that_frees_what_others_have_allocated_has_a_peak_too() {
    let others = vec![0_u8; 1 << 20];
    let peak = thread::spawn(move || {
        drop(black_box(others));
        alloc::peak(|| black_box(vec![0_u8; 300])).1
    });
    assert_eq!(peak.join().unwrap(), 300);
}

#[test]
fn other_threads_are_not_counted() {
    let spawn_alone = alloc::count(|| thread::spawn(|| ()).join().unwrap());
    let noisy =
        alloc::count(|| thread::spawn(|| drop(black_box(vec![0; 1 << 20]))).join().unwrap());
    assert!(noisy.bytes < spawn_alone.bytes + 1_000, "{noisy:?} against {spawn_alone:?}");
}

#[test]
fn counts_nest() {
    let mut inner = Allocations::default();
    let outer = alloc::count(|| {
        let first = black_box(Box::new(1_u8));
        inner = alloc::count(|| black_box(Box::new(2_u8)));
        first
    });
    assert_eq!(inner.count, 1);
    assert!(outer.count >= 2, "{outer:?}");
}

#[tokio::test]
async fn a_future_is_counted_only_while_it_is_polled() {
    let counted = alloc::count_polls(async {
        let before = black_box(Box::new(1_u8));
        tokio::task::yield_now().await;
        *before + *black_box(Box::new(2_u8))
    });
    let elsewhere = async { drop(black_box(vec![0_u8; 1 << 20])) };
    let ((sum, made), ()) = tokio::join!(counted, elsewhere);
    assert_eq!(sum, 3);
    assert!(made.bytes < 1 << 20, "{made:?}");
    assert!(made.count >= 2, "{made:?}");
}
