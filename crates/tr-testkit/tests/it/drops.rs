//! Dropping at random finds what leaks, and is the same every time.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{Notify, Semaphore};
use tower::{ServiceExt, limit::ConcurrencyLimit};
use tr_testkit::{
    drops,
    tool::{Scripted, Step},
};

const TICK: Duration = Duration::from_millis(1);

fn slow(ticks: usize) -> Scripted<(), ()> {
    let step = (0..ticks).fold(Step::Ok(()), |then, _| Step::after(TICK, then));
    Scripted::script([step]).then_repeat_last()
}

#[tokio::test(start_paused = true)]
async fn every_await_point_has_its_turn_and_the_end_too() {
    const TICKS: usize = 10;
    let tool = slow(TICKS);
    let asked = tool.handle();
    let report = drops::at_random(1, 2_000, || tool.clone().oneshot(())).await;
    assert_eq!((report.finished + report.dropped, report.stuck), (2_000, 0));
    assert!(report.finished > 50, "{report:?}");

    let mut polls: Vec<_> = asked.attempts().iter().map(|a| a.polls).collect();
    polls.sort_unstable();
    polls.dedup();
    assert_eq!(polls, (1..=TICKS + 1).collect::<Vec<_>>());
    assert!((asked.calls() as u64) < 2_000, "some were dropped before the first poll");
    assert_eq!(asked.max_in_flight(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_seed_is_a_run() {
    async fn run(seed: u64) -> (drops::Report, Vec<Duration>) {
        let tool = slow(5);
        let asked = tool.handle();
        let limited = ConcurrencyLimit::new(tool, 2);
        let report = drops::at_random(seed, 500, || limited.clone().oneshot(())).await;
        (report, asked.ends())
    }
    assert_eq!(run(3).await, run(3).await);
    assert_ne!(run(3).await, run(4).await);
}

#[tokio::test(start_paused = true)]
async fn a_leaked_permit_is_seen() {
    let permits = Semaphore::new(2);
    let leaks = || async {
        permits.acquire().await.unwrap().forget();
        tokio::time::sleep(TICK).await;
        permits.add_permits(1); // not reached when dropped
    };
    let report = drops::at_random(5, 200, leaks).await;
    assert_eq!(permits.available_permits(), 0);
    assert!(report.stuck > 0, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_driver_is_gone_is_stuck() {
    let (running, done) = (Mutex::new(false), Notify::new());
    let joins = || async {
        let mine = !std::mem::replace(&mut *running.lock().unwrap(), true);
        if mine {
            tokio::time::sleep(TICK).await;
            *running.lock().unwrap() = false;
            done.notify_waiters();
        } else {
            done.notified().await;
        }
    };
    let report = drops::at_random(5, 200, joins).await;
    assert!(report.stuck > 0, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn what_hangs_is_given_up() {
    let alive = Arc::new(());
    let report = drops::at_random(9, 100, || {
        let alive = alive.clone();
        async move {
            let _alive = alive;
            pending::<()>().await;
        }
    })
    .await;
    assert_eq!(report.finished, 0);
    assert_eq!(report.dropped + report.stuck, 100);
    assert!(report.stuck > 0 && report.dropped > 0, "{report:?}");
    assert_eq!(Arc::strong_count(&alive), 1);
}
