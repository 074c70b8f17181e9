//! R2 over a store: callers of two processes vanish at random points.
use crate::{
    faults::{Fault, Faulty},
    support::*,
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tower::ServiceExt;
use tr_core::{Ran, Verdict};
use tr_idempotency::{
    Counts, IdempotencyLayer,
    store::{Memory, Query, RecordStore, StateFilter},
};
use tr_testkit::{
    drops, rounds,
    tool::{Scripted, Step},
};

/// How many callers ask for a key, and among how many keys each chooses.
const CALLERS: u64 = 10;
const KEYS: u64 = 32;

/// How often each key has run. Those that nobody asks for any more are looked at and forgotten.
#[derive(Default)]
struct Runs {
    latest: BTreeMap<u64, u32>,
    total: u64,
}

impl Runs {
    fn add(&mut self, key: u64) {
        self.total += 1;
        *self.latest.entry(key).or_default() += 1;
        assert_eq!(self.latest[&key], 1, "{key} runs again");
        if self.latest.len() > 10_000 {
            self.latest.pop_first();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_random_points_no_claim_lease_or_watch_leaks_and_nothing_runs_twice() {
    let records = Memory::new();
    let faulty = Faulty::slow(records.clone());
    let runs = Arc::new(Mutex::new(Runs::default()));
    let tool = || -> Tool {
        let runs = runs.clone();
        let tool = Scripted::by(move |n, call: &tr_core::ToolCall| {
            if n % 7 == 1 {
                return fails("circuit_open", Ran::No, Verdict::TRANSIENT);
            }
            let key = call.parts().idempotency.key.as_deref().unwrap().parse().unwrap();
            runs.lock().unwrap().add(key);
            let end = Step::after(Duration::from_millis(1), Step::Ok(number(n)));
            Step::after(Duration::from_millis(1), end)
        });
        tool.capacity(3).unlogged()
    };
    let process = |tool: Tool| {
        let layer = IdempotencyLayer::builder().store(faulty.clone()).done_ttl(HOUR);
        guarded_by(&layer.build().unwrap(), tool)
    };
    let (a, front_a, asked_a) = process(tool());
    let (b, front_b, asked_b) = process(tool());
    let _sweeps = front_a.spawn_janitor();

    let total = rounds(20_000, 10_000_000);
    let rng = RefCell::new(fastrand::Rng::with_seed(11));
    let made = Cell::new(0);
    let make = || {
        let mut rng = rng.borrow_mut();
        if rng.u8(..50) == 0 {
            let operation = *rng.choice(&["claim", "renew", "finalize"]).unwrap();
            let fault = *rng.choice(&[Fault::Unreachable, Fault::ReplyLost, Fault::Hangs]).unwrap();
            faulty.fail(operation, fault, rng.usize(1..3));
        }
        made.set(made.get() + 1);
        let call = pay(&(made.get() / CALLERS + rng.u64(..KEYS)).to_string());
        let call = if rng.bool() { best_effort(call) } else { call };
        let service = if rng.bool() { a.clone() } else { b.clone() };
        service.oneshot(call)
    };
    let report = drops::at_random(7, total, make).await;
    faulty.up();
    // A run whose caller vanished ends, and is recorded or released.
    pass(MINUTE).await;
    assert_eq!((report.finished + report.dropped, report.stuck), (total, 0));
    for front in [front_a, front_b] {
        let Counts { inflight, unknown, waiters, .. } = front.counts();
        assert_eq!((inflight, unknown, waiters), (0, 0, 0));
        assert_eq!(front.in_store().unwrap().left_to_leases(), 0);
    }
    for asked in [asked_a, asked_b] {
        assert_eq!((asked.in_flight(), asked.reserved(), asked.waiting()), (0, 0, 0));
    }
    for state in [StateFilter::Inflight { at_least: 0 }, StateFilter::Unknown] {
        assert_eq!(records.count(&Query { state, ..Query::ALL }).await.unwrap(), 0, "{state:?}");
    }
    let runs = runs.lock().unwrap().total;
    println!("R2 over a store: {report:?}, {runs} runs, none of them a second one");
    assert!(runs > total / 20, "most were replays");
}

/// At each await point, alone and with a waiter behind it, by two processes.
#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_over_a_store_nothing_leaks_and_nothing_runs_twice() {
    for polls in 0..14 {
        for waiters in 0..3 {
            let records = Memory::new();
            let slow = || {
                let store = Faulty::slow(records.clone());
                IdempotencyLayer::builder().store(store).build().unwrap()
            };
            let (a, front, ran_a) = guarded_by(&slow(), counting(Duration::from_millis(1)));
            let (b, _, ran_b) = guarded_by(&slow(), counting(Duration::from_millis(1)));
            let mut dropped = Box::pin(tower::Service::call(&mut a.clone(), pay("k")));
            let mut left = polls;
            let spent = std::future::poll_fn(|cx| {
                if left == 0 {
                    return std::task::Poll::Ready(());
                }
                left -= 1;
                std::future::Future::poll(dropped.as_mut(), cx).map(|_| ())
            });
            spent.await;
            let mut waiting = Vec::new();
            for n in 0..waiters {
                waiting.push(start(if n % 2 == 0 { &a } else { &b }, pay("k")).await);
            }
            drop(dropped);
            for waiter in waiting {
                assert_eq!(answer(waiter.await.unwrap()), 0, "dropped after {polls} polls");
            }
            assert_eq!(answer(call(&b, pay("k")).await), 0);
            pass(SECOND).await;
            assert_eq!(ran_a.calls() + ran_b.calls(), 1, "dropped after {polls} polls");
            assert_eq!(front.counts(), Counts::default());
            let open = Query { state: StateFilter::Inflight { at_least: 0 }, ..Query::ALL };
            assert_eq!(records.count(&open).await.unwrap(), 0);
        }
    }
}
