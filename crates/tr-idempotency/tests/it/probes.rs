//! Finding out what became of a call of unknown outcome.
use crate::support::*;
use std::sync::{Arc, Mutex};
use tr_core::{Ran, ToolOutcome, Verdict};
use tr_idempotency::{
    IdempotencyLayer,
    store::{Finding, Memory, Probe, ProbeFuture, Unsettled},
};
use tr_testkit::tool::{Scripted, Step};

#[derive(Debug)]
struct Asks(Mutex<Vec<Finding<ToolOutcome>>>, Mutex<Vec<Unsettled>>);

#[derive(Clone, Debug)]
struct Provider(Arc<Asks>);

impl Probe<ToolOutcome> for Provider {
    fn probe<'p>(&'p self, call: &'p Unsettled) -> ProbeFuture<'p, ToolOutcome> {
        Box::pin(async move {
            tokio::time::sleep(SECOND).await;
            self.0.1.lock().unwrap().push(call.clone());
            self.0.0.lock().unwrap().pop().unwrap_or(Finding::StillUnknown)
        })
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
        let records = Memory::new();
        let provider = Provider(Arc::new(Asks(Mutex::default(), Mutex::default())));
        provider.0.0.lock().unwrap().extend(finding);
        let layer = IdempotencyLayer::builder()
            .store(records.clone())
            .probe(provider.clone())
            .build()
            .unwrap();
        let tool = Scripted::by(|n, _| match n {
            0 => fails("timeout", Ran::Unknown, Verdict::TRANSIENT),
            n => Step::after(SECOND, Step::Ok(number(n))),
        });
        let (service, ..) = guarded_by(&layer, tool);
        assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
        let first = start(&service, pay("k")).await;
        let second = start(&service, pay("k")).await;
        for told in [first.await.unwrap(), second.await.unwrap()] {
            match end {
                Ok(value) => assert_eq!(answer(told), value),
                Err(code) => assert_eq!(refusal(told).0, code),
            }
        }
        let asked = provider.0.1.lock().unwrap();
        assert_eq!(asked.len(), 1, "one asks for all");
        assert_eq!(asked[0].provider_key(), key_of(&pay("k")).to_string());
        assert_eq!(asked[0].record.error.as_ref().unwrap().code, "timeout");
    }
}

#[derive(Debug)]
struct Mute;

impl Probe<ToolOutcome> for Mute {
    fn probe<'p>(&'p self, _: &'p Unsettled) -> ProbeFuture<'p, ToolOutcome> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_never_answers_holds_nobody_for_ever() {
    for (limit, ends) in [(None, 30 * SECOND), (Some(2 * SECOND), 2 * SECOND)] {
        let builder = IdempotencyLayer::builder().store(Memory::new()).probe(Mute);
        let builder = match limit {
            Some(limit) => builder.probe_timeout(limit),
            None => builder,
        };
        let tool = Scripted::by(|_, _| fails("timeout", Ran::Unknown, Verdict::TRANSIENT));
        let (service, front, _) = guarded_by(&builder.build().unwrap(), tool);
        assert_eq!(refusal(call(&service, pay("k")).await).0, "timeout");
        let asked = tokio::time::Instant::now();
        assert_eq!(refusal(call(&service, pay("k")).await).0, "outcome_unknown");
        assert_eq!(asked.elapsed(), ends);
        assert_eq!(front.counts().inflight, 0);
    }
}
