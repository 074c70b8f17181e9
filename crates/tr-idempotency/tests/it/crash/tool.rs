//! The tool that all processes call behind their records, and how a repeat of a call ends.
use super::fuse::{Fuse, Point};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_idempotency::{IdempotencyLayer, error::OutcomeUnknown, store::RecordStore};
use tr_testkit::ledger::Ledger;

/// A request to the store, and a call, are answered within this, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// How a repeat ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It got the recorded answer.
    Replayed,
    /// The tool ran now.
    Ran,
    /// The tool may have run, and is not run again.
    Unknown,
}

/// What may become of a lone call whose process died here, and how often its tool had run.
pub(crate) fn allowed(point: Point) -> &'static [(Repeat, usize)] {
    use Repeat::{Ran, Replayed, Unknown};
    match point {
        Point::BeforeClaim => &[(Ran, 0)],
        Point::ClaimSent => &[(Ran, 0), (Unknown, 0)],
        Point::ClaimCommitted | Point::ToolEntered => &[(Unknown, 0)],
        Point::EffectDone | Point::BeforeFinalize => &[(Unknown, 1)],
        // A claim that was granted late is renewed before the tool is called.
        Point::BeforeRenew | Point::RenewSent | Point::RenewCommitted => {
            &[(Unknown, 1), (Unknown, 0)]
        }
        Point::FinalizeSent => &[(Unknown, 1), (Replayed, 1)],
        Point::FinalizeCommitted => &[(Replayed, 1)],
    }
}

/// A mutating call: the tool is not declared.
pub(crate) fn call(key: &str) -> ToolCall {
    ToolCall::new("pay", Params::from_text(r#"{"amount": 5}"#).unwrap())
        .session("s-1")
        .idempotency_key(key)
}

/// What the tool says, also when it is said again.
pub(crate) fn is_answer(outcome: &ToolOutcome, key: &str) -> bool {
    outcome.content().is_some_and(|said| said.get() == format!(r#"{{"paid":"{key}"}}"#))
}

/// The tool behind its records.
pub(crate) fn guarded(
    store: Arc<dyn RecordStore>,
    ledger: Ledger,
    fuse: Arc<Fuse>,
    lease: Duration,
    takes: Duration,
) -> impl Service<ToolCall, Response = ToolOutcome, Error = BoxError, Future: Send> + Clone + Send {
    let layer = IdempotencyLayer::builder()
        .shared_store(store)
        .store_timeout(PATIENCE)
        .inflight_ttl(lease)
        .build()
        .unwrap();
    ServiceBuilder::new().layer(layer).service(service_fn(move |call: ToolCall| {
        let (ledger, fuse) = (ledger.clone(), fuse.clone());
        async move {
            let key = call.parts().idempotency.key.clone().unwrap();
            fuse.reach(Point::ToolEntered);
            ledger.append(&key)?;
            fuse.reach(Point::EffectDone);
            tokio::time::sleep(takes).await;
            Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!({ "paid": &*key })))
        }
    }))
}

/// Repeats the call in a process that keeps its own calls for so long.
pub(crate) async fn repeat(
    store: Arc<dyn RecordStore>,
    ledger: &Ledger,
    lease: Duration,
    key: &str,
) -> Repeat {
    let fuse = Fuse::new(Some(Point::BeforeClaim), 0, Duration::ZERO);
    let mut tool = guarded(store, ledger.clone(), fuse, lease, Duration::ZERO);
    let answer = tool.ready().await.unwrap().call(call(key));
    match timeout(PATIENCE, answer).await.expect("a repeat is answered") {
        Ok(outcome) => {
            assert!(is_answer(&outcome, key), "{outcome:?}");
            if outcome.from_cache() { Repeat::Replayed } else { Repeat::Ran }
        }
        Err(error) => {
            assert!(error.is::<OutcomeUnknown>(), "{error:?}");
            Repeat::Unknown
        }
    }
}
