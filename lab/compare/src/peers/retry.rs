//! Retry: tower-resilience.
use benches::{
    kind::Kind,
    run::{Comes, Run},
};
use std::time::Duration;
use tower::Layer;
use tower_resilience::retry::RetryLayer;

pub(super) fn layer<Q, T, E>() -> RetryLayer<Q, T, E> {
    RetryLayer::<Q, T, E>::builder()
        .name("bench")
        .max_attempts(4)
        .exponential_backoff(Duration::from_millis(200))
        .build()
}

/// tower-resilience, success at once.
#[must_use]
pub fn tower_resilience<K: Kind>() -> Run {
    let service = layer::<K::Request, K::Answer, K::Error>().layer(K::Leaf::default());
    Run::service(Comes::Through, service, K::same())
}
