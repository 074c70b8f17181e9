//! Several layers of a peer around one service.
use super::{
    breaker,
    records::{self, Key},
    retry,
};
use benches::{
    kind::Keyed,
    run::{Comes, Run},
    small::Failed,
};
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
