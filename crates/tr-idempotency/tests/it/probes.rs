//! Finding out what became of a call of unknown outcome.
use crate::support::*;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tr_core::{Ran, ToolOutcome, Verdict};
use tr_idempotency::{
    Builder, IdempotencyLayer, Resolution,
    error::AnswerNotKept,
    store::{Finding, Memory, Probe, ProbeFuture, UnresolvedCall},
};
use tr_testkit::tool::{Scripted, Step};

#[derive(Debug)]
struct Asks(Mutex<Vec<Finding<ToolOutcome>>>, Mutex<Vec<UnresolvedCall>>);

#[derive(Clone, Debug)]
struct Provider(Arc<Asks>);

impl Probe<ToolOutcome> for Provider {
    fn probe<'p>(&'p self, call: &'p UnresolvedCall) -> ProbeFuture<'p, ToolOutcome> {
        Box::pin(async move {
            tokio::time::sleep(SECOND).await;
            self.0.1.lock().unwrap().push(call.clone());
            self.0.0.lock().unwrap().pop().unwrap_or(Finding::StillUnknown)
        })
    }
}

impl Provider {
    fn finding(finding: impl IntoIterator<Item = Finding<ToolOutcome>>) -> Self {
        Self(Arc::new(Asks(Mutex::new(finding.into_iter().collect()), Mutex::default())))
    }

    fn asked(&self) -> Vec<UnresolvedCall> {
        self.0.1.lock().unwrap().clone()
    }
}

/// Over a store, and in this process.
fn builders() -> [Builder; 2] {
    [IdempotencyLayer::builder().store(Memory::new()), IdempotencyLayer::builder()]
}

/// The first run is lost; later ones answer with their number.
fn lost_once() -> Tool {
    Scripted::by(|n, _| match n {
        0 => fails("timeout", Ran::Unknown, Verdict::TRANSIENT),
        n => Step::after(SECOND, Step::Ok(number(n))),
    })
}

/// What a probe finds takes as much room as any other answer.
#[tokio::test(start_paused = true)]
async fn what_a_probe_finds_is_bounded_by_bytes() {
    let found = |bytes| Finding::Done(ToolOutcome::success(json!("x".repeat(bytes))));
    for (bytes, kept) in [(2_000, true), (20_000, false)] {
        let builder = IdempotencyLayer::builder().max_record_bytes(10_000);
        let layer = builder.probe(Provider::finding([found(bytes)])).build().unwrap();
        let (service, _, asked) = guarded_by(&layer, lost_once());
        assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
        match call(&service, pay("k")).await {
            Ok(outcome) if kept => assert_eq!(outcome.content().unwrap().get().len(), 2_002),
            told => assert!(!kept && told.unwrap_err().is::<AnswerNotKept>()),
        }
        assert_eq!(asked.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_settles_what_is_unknown() {
    for (finding, end) in [
        (Some(Finding::Done(number(7))), Ok(7)),
        (Some(Finding::NotRun), Ok(1)),
        (Some(Finding::StillUnknown), Err("outcome_unknown")),
        (None, Err("outcome_unknown")),
    ] {
        for builder in builders() {
            let provider = Provider::finding(finding.clone());
            let layer = builder.probe(provider.clone()).build().unwrap();
            let (service, front, _) = guarded_by(&layer, lost_once());
            assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
            let first = start(&service, pay("k")).await;
            let second = start(&service, pay("k")).await;
            for told in [first.await.unwrap(), second.await.unwrap()] {
                match end {
                    Ok(value) => assert_eq!(answer(told), value),
                    Err(code) => assert_eq!(refusal(told).0, code),
                }
            }
            let asked = provider.asked();
            assert_eq!(asked.len(), 1, "one asks for all");
            assert_eq!(asked[0].provider_key(), key_of(&pay("k")).to_string());
            assert_eq!(asked[0].record.error.as_ref().unwrap().code, "timeout");
            assert_eq!(asked[0].epoch, asked[0].record.epoch);
            // The next to meet it asks again.
            if end.is_err() {
                assert_eq!(refusal(call(&service, pay("k")).await).0, "outcome_unknown");
                assert_eq!(provider.asked().len(), 2);
            } else {
                assert!(call(&service, pay("k")).await.unwrap().from_cache());
            }
            assert_eq!((front.counts().inflight, front.counts().waiters), (0, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_and_leaves_leaves_the_asking_to_the_next() {
    for builder in builders() {
        let provider = Provider::finding([Finding::Done(number(7))]);
        let layer = builder.probe(provider.clone()).build().unwrap();
        let (service, front, asked) = guarded_by(&layer, lost_once());
        assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
        let leaves = start(&service, pay("k")).await;
        let hurries = pay("k").deadline((tokio::time::Instant::now() + SECOND / 2).into_std());
        let hurries = start(&service, hurries).await;
        let stays = start(&service, pay("k")).await;
        leaves.abort();
        assert!(hurries.await.unwrap().is_err());
        assert_eq!(answer(stays.await.unwrap()), 7);
        assert_eq!((provider.asked().len(), asked.calls()), (1, 1));
        assert_eq!((front.counts().inflight, front.counts().waiters), (0, 0));
    }
}

/// Found while an operator settles, or the call is settled and run again.
#[tokio::test(start_paused = true)]
async fn what_a_probe_finds_is_of_one_run_and_settles_no_other() {
    let provider = Provider::finding([Finding::Done(number(7))]);
    let layer = IdempotencyLayer::builder().probe(provider).build().unwrap();
    let tool = Scripted::by(|_, _| fails("timeout", Ran::Unknown, Verdict::TRANSIENT));
    let (service, front, _) = guarded_by(&layer, tool);
    assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
    let asks = start(&service, pay("k")).await;
    let key = key_of(&pay("k"));
    front.settle(&key, Resolution::DidNotRun).unwrap();
    assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout", "it runs again");
    assert_eq!(front.unknown().len(), 1);
    // What it found is of the first run; the second is still unknown, and now nothing is found.
    assert_eq!(refusal(asks.await.unwrap()).0, "outcome_unknown");
    assert_eq!(front.unknown().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_call_that_was_lost_is_asked_after_too() {
    for builder in builders() {
        let provider = Provider::finding([Finding::Done(number(7))]);
        let layer = builder.probe(provider.clone()).build().unwrap();
        let tool = Scripted::by(|n, _| match n {
            0 => Step::after(SECOND, fails("timeout", Ran::Unknown, Verdict::TRANSIENT)),
            n => Step::Ok(number(n)),
        });
        let (service, ..) = guarded_by(&layer, tool);
        start(&service, unkeyed("{}")).await.abort();
        pass(2 * SECOND).await;
        assert_eq!(answer(call(&service, unkeyed("{}")).await), 7);
        assert_eq!(answer(call(&service, unkeyed("{}")).await), 1, "the answer was given once");
        assert_eq!(provider.asked().len(), 1);
    }
}

#[derive(Debug)]
struct Broken;

impl Probe<ToolOutcome> for Broken {
    fn probe<'p>(&'p self, _: &'p UnresolvedCall) -> ProbeFuture<'p, ToolOutcome> {
        Box::pin(async { panic!("the provider's answer is odd") })
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_fails_who_asked_and_leaves_the_record() {
    for builder in builders() {
        let layer = builder.probe(Broken).build().unwrap();
        let (service, front, asked) = guarded_by(&layer, lost_once());
        assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
        for _ in 0..2 {
            assert!(start(&service, pay("k")).await.await.unwrap_err().is_panic());
        }
        assert_eq!((asked.calls(), front.counts().inflight), (1, 0));
    }
}

#[derive(Debug)]
struct Mute;

impl Probe<ToolOutcome> for Mute {
    fn probe<'p>(&'p self, _: &'p UnresolvedCall) -> ProbeFuture<'p, ToolOutcome> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_never_answers_holds_nobody_for_ever() {
    for (limit, ends) in [(None, 30 * SECOND), (Some(2 * SECOND), 2 * SECOND)] {
        for builder in builders() {
            let builder = builder.probe(Mute);
            let builder = match limit {
                Some(limit) => builder.probe_timeout(limit),
                None => builder,
            };
            let (service, front, _) = guarded_by(&builder.build().unwrap(), lost_once());
            assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
            let asked = tokio::time::Instant::now();
            assert_eq!(refusal(call(&service, pay("k")).await).0, "outcome_unknown");
            assert_eq!(asked.elapsed(), ends);
            assert_eq!(front.counts().inflight, 0);
        }
    }
}
