//! Several layers of a peer around one tool.
use super::{breaker, records, retry};
use crate::{
    call,
    run::{Comes, Run},
    small::{Failed, Leaf, Small, unique},
};
use std::time::Duration;
use tower::{Service, ServiceBuilder};
use tower_resilience::{circuitbreaker::CircuitBreakerError, coalesce::CoalesceLayer};

/// tower-resilience: cache, coalesce, retry, breaker.
fn trio() -> impl Service<Small, Response = u64> {
    ServiceBuilder::new()
        .layer(records::cache())
        .layer(CoalesceLayer::new(|request: &Small| request.key))
        // Coalescing wants an error that can be cloned, and the breaker's cannot.
        .map_err(|_: CircuitBreakerError<Failed>| Failed)
        .layer(retry::tower_resilience_layer::<CircuitBreakerError<Failed>>())
        .layer(breaker::tower_resilience_layer())
        .service(Leaf)
}

/// tower-resilience: a call that no cache knows.
#[must_use]
pub fn trio_miss() -> Run {
    Run::service(Comes::Through, trio(), unique())
}

/// tower-resilience: a call that its cache knows.
#[must_use]
pub fn trio_hit() -> Run {
    Run::service(Comes::Replayed, trio(), Small::same)
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
