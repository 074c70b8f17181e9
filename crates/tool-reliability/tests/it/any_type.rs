//! Layers around a service whose request, response and error are its own, without an impl and without a policy.
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tool_reliability::{
    BoxError, Effect,
    breaker::{Breaker, BreakerLayer, CircuitOpen},
    core::{
        NamedPolicy, find,
        policy::{Keyed, WithEffectBy, WithFailure, WithPermanentError},
    },
    retry::{Retry, RetryLayer},
    timeout::{AttemptTimeout, AttemptTimeoutLayer, Deadline, DeadlineLayer},
};
use tower::{Service, ServiceBuilder, ServiceExt as _};

#[derive(Clone)]
struct Query {
    shard: &'static str,
    answers: Arc<AtomicU32>,
    ends: fn(u32) -> Result<Quote, QuoteError>,
}

#[derive(Debug)]
struct Quote {
    is_stale: bool,
}

#[derive(Debug)]
struct QuoteError {
    is_typo: bool,
}

impl fmt::Display for QuoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no quote")
    }
}

impl std::error::Error for QuoteError {}

fn query(shard: &'static str, ends: fn(u32) -> Result<Quote, QuoteError>) -> Query {
    Query { shard, answers: Arc::default(), ends }
}

async fn answer(query: Query) -> Result<Quote, QuoteError> {
    (query.ends)(query.answers.fetch_add(1, Relaxed))
}

/// A client that names its layers, one by one.
#[derive(Clone)]
struct Quotes<S> {
    client: Deadline<Retried<Broken<AttemptTimeout<S, NamedPolicy>>>, NamedPolicy>,
}

type Broken<S> = Breaker<S, WithFailure<Keyed<NamedPolicy, Query>, Quote>>;
type Retried<S> =
    Retry<S, WithPermanentError<WithFailure<WithEffectBy<NamedPolicy, Query>, Quote>, QuoteError>>;

impl<S> Quotes<S>
where
    S: Service<Query, Response = Quote, Error = QuoteError> + Clone,
{
    fn new(service: S) -> Result<Self, BoxError> {
        let retry = RetryLayer::named("quotes")
            .attempts(3)
            .effect(|_: &Query| Effect::ReadOnly)
            .failure(|quote: &Quote| quote.is_stale)
            .permanent_error(|error: &QuoteError| error.is_typo);
        let breaker = BreakerLayer::named("quotes")
            .consecutive_failures(4)
            .key(|query: &Query| query.shard)
            .failure(|quote: &Quote| quote.is_stale);
        let timeout = AttemptTimeoutLayer::named("quotes").after(Duration::from_secs(1));
        let client = ServiceBuilder::new()
            .layer(DeadlineLayer::named("quotes").per_call(Duration::from_secs(20)).build()?)
            .layer(retry.build()?)
            .layer(breaker.build()?)
            .layer(timeout.build()?)
            .service(service);
        Ok(Self { client })
    }
}

fn quotes()
-> Quotes<impl Service<Query, Response = Quote, Error = QuoteError, Future: Send> + Clone> {
    Quotes::new(tower::service_fn(answer)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn responses_and_errors_are_judged_by_the_functions() {
    let late = query("a", |call| Ok(Quote { is_stale: call < 2 }));
    assert!(!quotes().client.oneshot(late.clone()).await.unwrap().is_stale);
    assert_eq!(late.answers.load(Relaxed), 3, "a stale quote is asked for again");

    let down = query("a", |_| Err(QuoteError { is_typo: false }));
    let error = quotes().client.oneshot(down.clone()).await.unwrap_err();
    assert_eq!(down.answers.load(Relaxed), 3);
    assert!(!find::<QuoteError>(&*error).unwrap().is_typo, "one's own error is in it");

    let typo = query("a", |_| Err(QuoteError { is_typo: true }));
    let error = quotes().client.oneshot(typo.clone()).await.unwrap_err();
    assert_eq!(typo.answers.load(Relaxed), 1, "a final error is not tried again");
    assert!(error.downcast::<QuoteError>().unwrap().is_typo, "and comes as it was");
}

#[tokio::test(start_paused = true)]
async fn each_shard_has_a_breaker() {
    let mut quotes = quotes().client;
    let mut ask = async |shard| {
        let down = query(shard, |_| Ok(Quote { is_stale: true }));
        let end = quotes.ready().await.unwrap().call(down.clone()).await;
        (
            end.err().is_some_and(|error| find::<CircuitOpen>(&*error).is_some()),
            down.answers.load(Relaxed),
        )
    };
    assert_eq!(ask("a").await, (false, 3));
    assert_eq!(ask("a").await, (true, 1), "the fourth failure in a row opens it");
    assert_eq!(ask("b").await, (false, 3));
}
