//! Several layers of a peer around one service.
use super::{
    breaker,
    records::{self, Key},
    retry,
};
use crate::{
    call,
    kind::{Keyed, Kind},
    run::{Comes, Run},
    small::Failed,
};
use std::time::Duration;
use tower::{Service, ServiceBuilder};
use tower_resilience::{circuitbreaker::CircuitBreakerError, coalesce::CoalesceLayer};

/// tower-resilience: cache, coalesce, retry, breaker.
fn trio<K: Keyed>() -> impl Service<K::Request> {
    ServiceBuilder::new()
        .layer(records::cache::<K>())
        .layer(CoalesceLayer::new(K::key as fn(&K::Request) -> Key))
        // Coalescing wants an error that can be cloned, and the breaker's cannot.
        .map_err(|_: CircuitBreakerError<K::Error>| Failed)
        .layer(retry::layer::<K::Request, K::Answer, CircuitBreakerError<K::Error>>())
        .layer(breaker::tower_resilience_layer())
        .service(K::Leaf::default())
}

/// tower-resilience: a call that no cache knows.
#[must_use]
pub fn trio_miss<K: Keyed>() -> Run {
    Run::service(Comes::Through, trio::<K>(), K::unique())
}

/// tower-resilience: a call that its cache knows.
#[must_use]
pub fn trio_hit<K: Keyed>() -> Run {
    Run::service(Comes::Replayed, trio::<K>(), K::same())
}

/// tower: timeout, retry with a budget, concurrency limit.
#[must_use]
pub fn tower() -> Run {
    let service = ServiceBuilder::new()
        .timeout(Duration::from_secs(10))
        .retry(retry::Attempts::with_budget())
        .concurrency_limit(100)
        .service(call::Leaf);
    Run::service(Comes::Through, service, call::unique(0))
}

/// tower's timeout.
#[must_use]
pub fn tower_timeout<K: Kind>() -> Run {
    let service =
        ServiceBuilder::new().timeout(Duration::from_secs(10)).service(K::Leaf::default());
    Run::service(Comes::Through, service, K::same())
}
