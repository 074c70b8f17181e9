//! Several layers of a peer around one tool.
use super::{
    breaker,
    records::{self, Key},
    retry,
};
use crate::{
    call,
    run::{Comes, Run},
    small::{Failed, Leaf, Small, unique},
};
use std::time::Duration;
use tower::{Service, ServiceBuilder};
use tower_resilience::{circuitbreaker::CircuitBreakerError, coalesce::CoalesceLayer};

/// tower-resilience: cache, coalesce, retry, breaker.
fn trio<Q, S>(leaf: S, key: fn(&Q) -> Key) -> impl Service<Q>
where
    Q: Clone + Send + Sync + 'static,
    S: Service<Q, Future: Send> + Clone + Send + Sync + 'static,
    S::Response: Clone + Send + Sync + 'static,
    S::Error: Clone + Send + Sync + std::fmt::Debug + 'static,
{
    ServiceBuilder::new()
        .layer(records::cache(key))
        .layer(CoalesceLayer::new(key))
        // Coalescing wants an error that can be cloned, and the breaker's cannot.
        .map_err(|_: CircuitBreakerError<S::Error>| Failed)
        .layer(retry::tower_resilience_layer::<Q, S::Response, CircuitBreakerError<S::Error>>())
        .layer(breaker::tower_resilience_layer())
        .service(leaf)
}

/// tower-resilience: a call that no cache knows.
#[must_use]
pub fn trio_miss() -> Run {
    Run::service(Comes::Through, trio(Leaf, records::key), unique())
}

/// tower-resilience: a call that its cache knows.
#[must_use]
pub fn trio_hit() -> Run {
    Run::service(Comes::Replayed, trio(Leaf, records::key), Small::same)
}

/// tower-resilience: a tool call that no cache knows.
#[must_use]
pub fn trio_call_miss() -> Run {
    Run::service(Comes::Through, trio(call::Leaf, call::key), call::unique(0))
}

/// tower-resilience: a tool call that its cache knows.
#[must_use]
pub fn trio_call_hit() -> Run {
    Run::service(Comes::Replayed, trio(call::Leaf, call::key), call::same())
}

/// tower: timeout, retry with a budget, concurrency limit.
#[must_use]
pub fn tower_stack() -> Run {
    let service = ServiceBuilder::new()
        .timeout(Duration::from_secs(10))
        .retry(retry::Attempts::with_budget())
        .concurrency_limit(100)
        .service(call::Leaf);
    Run::service(Comes::Through, service, call::unique(0))
}

/// tower's timeout.
#[must_use]
pub fn tower_timeout() -> Run {
    let service = ServiceBuilder::new().timeout(Duration::from_secs(10)).service(call::Leaf);
    Run::service(Comes::Through, service, call::same())
}
