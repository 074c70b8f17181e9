//! Every order of the gate's atomic steps, by loom:
//! `RUSTFLAGS="--cfg tr_loom" CARGO_TARGET_DIR=target-loom cargo test --release -p tr-breaker --test loom`.
#![cfg(tr_loom)]
use loom::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    thread,
};
use std::{sync::atomic, time::Duration};
use tr_breaker::{Builder, model::Model};
use tr_core::BreakerState::{Closed, HalfOpen, Open};

/// Opens at two failures in a row, or at half of four calls; cools down in a second.
fn builder() -> Builder {
    Builder::close_on_first_success()
        .consecutive_failures(2)
        .min_calls(4)
        .window(4)
        .cooldown(Duration::from_secs(1))
}

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    let orders = std::sync::Arc::new(atomic::AtomicU32::new(0));
    let counted = orders.clone();
    model.check(move || {
        counted.fetch_add(1, SeqCst);
        test();
    });
    assert!(orders.load(SeqCst) > 1, "only one order was tried");
}

/// Runs both at once, and waits.
fn both(
    breaker: &Arc<Model>,
    one: impl FnOnce(&Model) + 'static,
    other: impl FnOnce(&Model) + 'static,
) {
    let its = breaker.clone();
    let thread = thread::spawn(move || one(&its));
    other(breaker);
    thread.join().unwrap();
}

/// A closed breaker whose successes need no lock: it has seen one.
fn warm(builder: &Builder) -> Arc<Model> {
    let breaker = Arc::new(Model::new(builder));
    let call = breaker.admit(0).unwrap();
    call.succeed(0, 0);
    breaker
}

/// Open, and past its cooldown at 1,000 ms.
fn opened(builder: &Builder) -> Arc<Model> {
    let breaker = Arc::new(Model::new(builder));
    for _ in 0..2 {
        let call = breaker.admit(0).unwrap();
        call.fail(0);
    }
    breaker
}

#[test]
fn no_failure_is_lost() {
    explore(|| {
        let breaker = warm(&builder());
        let fail = |breaker: &Model| {
            if let Some(call) = breaker.admit(1) {
                call.fail(1);
            }
        };
        both(&breaker, fail, fail);
        assert_eq!(breaker.state(1), Open);
    });
}

#[test]
fn no_success_is_lost_or_counted_twice() {
    explore(|| {
        let breaker = warm(&builder());
        let [first, second] = [breaker.admit(1).unwrap(), breaker.admit(1).unwrap()];
        both(&breaker, move |_| first.succeed(1, 1), move |_| second.fail(1));
        assert_eq!(breaker.counts(1), (3, 1, (0, 0)));
    });
}

#[test]
fn one_lane_for_all_threads_loses_none_either() {
    explore(|| {
        let breaker = Arc::new(Model::of_one_lane(&builder()));
        let [first, second] = [breaker.admit(0).unwrap(), breaker.admit(0).unwrap()];
        let third = breaker.admit(0).unwrap();
        both(
            &breaker,
            move |_| first.succeed(0, 1),
            move |_| {
                second.succeed(1, 1);
                third.fail(1);
            },
        );
        assert_eq!(breaker.counts(1), (3, 1, (0, 0)));
    });
}

#[test]
fn a_success_that_fills_up_the_least_number_of_calls_opens() {
    explore(|| {
        let breaker = warm(&builder().consecutive_failures(None));
        let calls = [breaker.admit(1).unwrap(), breaker.admit(1).unwrap()];
        let [failing, succeeding] = calls;
        let early = breaker.admit(1).unwrap();
        early.fail(1);
        both(&breaker, move |_| succeeding.succeed(1, 1), move |_| failing.fail(1));
        assert_eq!(breaker.state(1), Open, "two of four, in whatever order");
    });
}

#[test]
fn at_most_as_many_probes_as_allowed() {
    for allowed in [1, 2] {
        explore(move || {
            let breaker = opened(&builder().max_probes(allowed));
            let out = Arc::new(AtomicU32::new(0));
            let threads = [(); 2].map(|()| {
                let (breaker, out) = (breaker.clone(), out.clone());
                thread::spawn(move || {
                    if breaker.admit(1_000).is_some() {
                        out.fetch_add(1, SeqCst);
                    }
                })
            });
            out.fetch_add(u32::from(breaker.admit(1_000).is_some()), SeqCst);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(out.load(SeqCst), allowed);
        });
    }
}

#[test]
fn a_dropped_probe_comes_back_once() {
    explore(|| {
        let breaker = opened(&builder());
        let probe = breaker.admit(1_000).unwrap();
        both(&breaker, move |_| probe.give_up(1_000), |breaker| drop(breaker.admit(1_000)));
        let (.., (probes, _)) = breaker.counts(1_000);
        let more = breaker.admit(1_000).is_some();
        assert_eq!(probes + u32::from(more), 1);
    });
}

#[test]
fn a_stale_success_never_closes_and_a_stale_failure_never_reopens() {
    for stale_fails in [false, true] {
        explore(move || {
            let breaker = warm(&builder());
            let stale = breaker.admit(0).unwrap();
            for _ in 0..2 {
                let call = breaker.admit(0).unwrap();
                call.fail(0);
            }
            both(
                &breaker,
                move |_| match stale_fails {
                    true => stale.fail(1_000),
                    false => stale.succeed(1, 1_000),
                },
                |breaker| assert_eq!(breaker.state(1_000), HalfOpen),
            );
            assert_eq!(breaker.state(1_000), HalfOpen);
            assert_eq!(breaker.counts(1_000).2, (0, 0));
        });
    }
}

#[test]
fn a_success_from_before_a_reset_is_not_counted_after_it() {
    explore(|| {
        let breaker = warm(&builder());
        let before = breaker.admit(1).unwrap();
        both(
            &breaker,
            move |_| before.succeed(1, 1),
            |breaker| {
                breaker.reset(1);
                let after = breaker.admit(1).unwrap();
                after.succeed(0, 1);
            },
        );
        assert_eq!((breaker.state(1), breaker.counts(1)), (Closed, (1, 0, (0, 0))));
    });
}

#[test]
fn no_success_slips_past_the_end_of_a_lap() {
    explore(|| {
        let breaker = warm(&builder());
        let [first, second] = [breaker.admit(1).unwrap(), breaker.admit(1).unwrap()];
        both(&breaker, move |_| first.succeed(0, 100_000), move |_| second.succeed(1, 100_000));
        // A moment when the first success of all, and only that, is too old.
        assert_eq!(breaker.counts(120_001), (2, 0, (0, 0)));
    });
}

/// Two failures open both of them: neither a success nor a failure of the first breaker's may
/// count for the second, which serves where the first did.
#[test]
fn what_comes_too_late_changes_nothing_of_the_next_breaker() {
    for stale_fails in [false, true] {
        explore(move || {
            let first = Model::new(&builder().successes_to_close(1));
            let warm = first.admit(0).unwrap();
            warm.succeed(0, 0);
            let stale = first.admit(1).unwrap();
            let late = thread::spawn(move || match stale_fails {
                true => stale.fail(1),
                false => stale.succeed(1, 1),
            });
            drop(first);
            let second = Model::new(&builder());
            let call = second.admit(1).unwrap();
            call.succeed(1, 1);
            let call = second.admit(1).unwrap();
            call.fail(1);
            late.join().unwrap();
            assert_eq!((second.state(1), second.counts(1)), (Closed, (2, 1, (0, 0))));
        });
    }
}

#[test]
fn a_breaker_takes_over_where_another_one_stood() {
    loom::model(|| {
        let first = Model::new(&builder());
        let stale = first.admit(0).unwrap();
        drop(first);
        assert!(Model::new(&builder()).stands_where(&stale));
    });
}

/// A refusal reads three words, one after the other, while others are written.
#[test]
fn a_refusal_never_tells_more_than_a_cooldown() {
    explore(|| {
        let breaker = opened(&builder());
        both(
            &breaker,
            // First: loom sees that a load may come before a store, not the other way round.
            |breaker| {
                // A moment earlier: a call may have read the clock, or its stamp, before the other.
                if let Some(left) = breaker.left(999) {
                    assert!(left <= Duration::from_secs(1), "{left:?}");
                }
            },
            |breaker| {
                let probe = breaker.admit(1_000).unwrap();
                probe.fail(1_000);
            },
        );
        assert_eq!(breaker.left(1_500), Some(Duration::from_millis(500)));
    });
}
