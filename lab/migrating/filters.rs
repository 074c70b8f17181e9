//! The peers' filters, and ours that `docs/migrating.md` names for them: the same errors are retried, and counted.
use backon::{ExponentialBuilder, Retryable};
use std::{
    error::Error as StdError,
    io::{Error, ErrorKind},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_resilience::circuitbreaker::CircuitBreakerLayer;
use tr_breaker::BreakerLayer;
use tr_core::{NamedPolicy, PolicyExt, find};
use tr_retry::RetryLayer;

const ERRORS: [(ErrorKind, &str); 8] = [
    (ErrorKind::TimedOut, "late"),
    (ErrorKind::Other, "account closed"),
    (ErrorKind::Other, "sold out"),
    (ErrorKind::InvalidData, "row 7 is broken"),
    (ErrorKind::AlreadyExists, "dup"),
    (ErrorKind::Unsupported, "no"),
    (ErrorKind::InvalidInput, "bad"),
    (ErrorKind::Interrupted, "sig"),
];

fn is_late(error: &Error) -> bool {
    error.kind() == ErrorKind::TimedOut
}

fn is_other(error: &(dyn StdError + 'static)) -> bool {
    !find::<Error>(error).is_some_and(is_late)
}

#[tokio::test(start_paused = true)]
async fn what_backon_retries_is_retried_and_nothing_else() {
    for (kind, text) in ERRORS {
        let theirs = AtomicU32::new(0);
        let lookup = async || {
            theirs.fetch_add(1, Relaxed);
            Err::<(), _>(Error::new(kind, text))
        };
        let backoff = ExponentialBuilder::default().with_max_times(2);
        lookup.retry(backoff).when(is_late).await.unwrap_err();

        let ours = Arc::new(AtomicU32::new(0));
        let counted = ours.clone();
        let policy = NamedPolicy::new("lookup").read_only().permanent_error(is_other);
        let layer = RetryLayer::builder().policy(policy).attempts(3).build().unwrap();
        let service = ServiceBuilder::new().layer(layer).service(service_fn(move |()| {
            counted.fetch_add(1, Relaxed);
            async move { Err::<(), _>(Error::new(kind, text)) }
        }));
        service.oneshot(()).await.unwrap_err();
        assert_eq!(ours.load(Relaxed), theirs.load(Relaxed), "{kind:?} {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_classifier_leaves_out_opens_no_breaker() {
    for (kind, opens) in [(ErrorKind::Other, false), (ErrorKind::TimedOut, true)] {
        let theirs = CircuitBreakerLayer::builder()
            .failure_rate_threshold(0.5)
            .sliding_window_size(20)
            .minimum_number_of_calls(10)
            .failure_classifier(|end: &Result<u32, Error>| end.as_ref().is_err_and(is_late))
            .wait_duration_in_open(Duration::from_secs(30))
            .build()
            .unwrap();
        let policy = NamedPolicy::new("shop").permanent_error(is_other);
        let ours = BreakerLayer::builder().policy(policy).consecutive_failures(None);
        let ours = ours.failure_rate(0.5).window(20).min_calls(10).build().unwrap();
        let shop =
            move || service_fn(move |_: u32| async move { Err::<u32, _>(Error::from(kind)) });
        let (theirs, ours) = (theirs.layer(shop()), ours.layer(shop()));
        let (mut by_theirs, mut by_ours) = (0, 0);
        for _ in 0..30 {
            let end = theirs.clone().oneshot(1).await.unwrap_err();
            by_theirs += usize::from(!end.to_string().contains(&Error::from(kind).to_string()));
            let end = ours.clone().oneshot(1).await.unwrap_err();
            by_ours += usize::from(find::<tr_breaker::CircuitOpen>(&*end).is_some());
        }
        // Theirs waits until its window is full.
        assert_eq!((by_theirs > 0, by_ours > 0), (opens, opens), "{kind:?}");
    }
}
