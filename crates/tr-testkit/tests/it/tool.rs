//! The scripted tool does what it is told and counts what was done to it.

use std::{error::Error, future::poll_fn, io, task::Poll, time::Duration};
use tokio::time::{sleep, timeout};
use tower::{Service, ServiceExt};
use tr_testkit::tool::{Breach, End, Failure, Scripted, Step};

const SECOND: Duration = Duration::from_secs(1);

type Tool = Scripted<u32, u32>;

async fn run(tool: &mut Tool, request: u32) -> Result<u32, Failure> {
    tool.ready().await?.call(request).await
}

#[tokio::test(start_paused = true)]
async fn it_fails_n_times_and_then_answers() {
    let mut tool = Tool::fails(2, "down", 7);
    assert_eq!(run(&mut tool, 1).await.unwrap_err().to_string(), "down");
    assert!(run(&mut tool.clone(), 2).await.is_err());
    assert_eq!(run(&mut tool, 3).await.unwrap(), 7);
    assert_eq!(run(&mut tool, 4).await.unwrap(), 7);
    let asked = tool.handle();
    assert_eq!((asked.calls(), asked.completed(), asked.cancelled()), (4, 4, 0));
    assert_eq!(asked.requests(), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn the_cause_is_the_source() {
    let mut tool = Tool::fails(1, io::Error::from(io::ErrorKind::ConnectionRefused), 7);
    let error = run(&mut tool, 1).await.unwrap_err();
    let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(error.to_string(), cause.to_string());
}

#[tokio::test(start_paused = true)]
async fn it_hangs_and_is_cancelled() {
    let mut tool = Tool::script([Step::Hang]);
    let asked = tool.handle();
    assert!(timeout(SECOND, run(&mut tool, 1)).await.is_err());
    assert_eq!((asked.in_flight(), asked.cancelled(), asked.completed()), (0, 1, 0));
    assert_eq!((asked.starts(), asked.ends()), (vec![Duration::ZERO], vec![SECOND]));
}

#[tokio::test(start_paused = true)]
async fn it_answers_late_in_as_many_wake_ups_as_told() {
    let mut tool = Tool::script([Step::after(SECOND, Step::after(SECOND, Step::Ok(7)))]);
    let asked = tool.handle();
    assert_eq!(run(&mut tool, 1).await.unwrap(), 7);
    assert_eq!(asked.ends(), [2 * SECOND]);
    assert_eq!(asked.attempts()[0].polls, 3);
}

#[tokio::test(start_paused = true)]
async fn it_panics_in_its_future_or_in_call() {
    let tool = Tool::script([Step::Panic, Step::PanicInCall, Step::Ok(7)]).capacity(1);
    let asked = tool.handle();
    for _ in 0..2 {
        let end = tokio::spawn(tool.clone().oneshot(1)).await;
        assert!(end.unwrap_err().is_panic());
    }
    assert_eq!(tool.oneshot(1).await.unwrap(), 7);
    let ends: Vec<_> = asked.attempts().iter().map(|a| a.ended.unwrap().1).collect();
    assert_eq!(ends, [End::Panicked, End::Panicked, End::Ok]);
    assert_eq!((asked.in_flight(), asked.reserved(), asked.breaches()), (0, 0, vec![]));
}

#[tokio::test(start_paused = true)]
async fn readiness_is_capacity() {
    let tool = Tool::script([Step::after(SECOND, Step::Ok(7))]).then_repeat_last().capacity(2);
    let asked = tool.handle();
    let mut holder = tool.clone();
    holder.ready().await.unwrap();
    assert_eq!(asked.reserved(), 1);

    let calls: Vec<_> = (0..3).map(|n| tokio::spawn(tool.clone().oneshot(n))).collect();
    sleep(SECOND / 2).await;
    assert_eq!((asked.in_flight(), asked.reserved(), asked.waiting()), (1, 1, 2));

    drop(holder);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), 7);
    }
    assert_eq!((asked.max_in_flight(), asked.waiting()), (2, 0));
    assert_eq!(asked.starts(), [0, 500, 1000].map(Duration::from_millis));
}

#[tokio::test(start_paused = true)]
async fn it_is_never_ready_until_it_is() {
    let mut tool = Tool::script([Step::Ok(7)]).capacity(0);
    let asked = tool.handle();
    assert!(timeout(SECOND, tool.ready()).await.is_err());
    let call = tokio::spawn(tool.oneshot(1));
    tokio::task::yield_now().await;
    asked.set_capacity(1);
    assert_eq!(call.await.unwrap().unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn it_fails_in_readiness() {
    let mut tool = Tool::script([Step::Ok(7)]).fails_readiness("gone");
    assert_eq!(tool.ready().await.unwrap_err().to_string(), "gone");
    assert_eq!(tool.handle().calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_says_who_breaks_the_rules() {
    let tool = Tool::script([Step::Ok(7)]);
    let asked = tool.handle();
    let mut ready = tool.clone();
    ready.ready().await.unwrap();

    let mut clone = ready.clone(); // is not ready, though its original is
    assert!(tokio::spawn(async move { clone.call(1).await }).await.is_err());

    let mut call = Box::pin(ready.call(1));
    assert!(call.as_mut().await.is_ok());
    assert!(tokio::spawn(call).await.is_err());

    assert!(tokio::spawn(tool.oneshot(1)).await.is_err());
    let breaches = [Breach::CalledUnready, Breach::PolledAfterEnd, Breach::ScriptOver];
    assert_eq!(asked.breaches(), breaches);
}

#[tokio::test(start_paused = true)]
async fn it_keeps_counting_without_a_log() {
    let mut tool = Tool::by(|n, request| Step::Ok(request + n as u32)).unlogged();
    assert_eq!(run(&mut tool, 5).await.unwrap(), 5);
    assert_eq!(run(&mut tool, 5).await.unwrap(), 6);
    let asked = tool.handle();
    assert_eq!((asked.calls(), asked.completed(), asked.max_in_flight()), (2, 2, 1));
    assert_eq!((asked.attempts().len(), asked.requests().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_never_polled_counts_as_cancelled() {
    let mut tool = Tool::script([Step::Ok(7)]).capacity(1);
    let asked = tool.handle();
    let call = tool.ready().await.unwrap().call(1);
    assert_eq!(asked.in_flight(), 1);
    drop(call);
    assert_eq!((asked.in_flight(), asked.cancelled()), (0, 1));
    let ready = poll_fn(|cx| Poll::Ready(tool.poll_ready(cx).is_ready())).await;
    assert!(ready);
}
