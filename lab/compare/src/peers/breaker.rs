//! Breakers: tower-resilience, recloser, failsafe.
use benches::{
    kind::Kind,
    run::{Comes, Run, runtime},
};
use failsafe::futures::CircuitBreaker as _;
use std::{hint::black_box, time::Duration};
use tower::{Layer, Service as _};
use tower_resilience::circuitbreaker::CircuitBreakerLayer;

const HOUR: Duration = Duration::from_secs(3600);

/// Half of the last 100 calls, as ours beside it has.
pub(super) fn tower_resilience_layer() -> CircuitBreakerLayer {
    CircuitBreakerLayer::builder()
        .name("bench")
        .failure_rate_threshold(0.5)
        .sliding_window_size(100)
        .wait_duration_in_open(HOUR)
        .build()
        .expect("good settings")
}

/// tower-resilience, closed.
#[must_use]
pub fn tower_resilience<K: Kind>() -> Run {
    Run::service(Comes::Through, tower_resilience_layer().layer(K::Leaf::default()), K::same())
}

/// tower-resilience, open for an hour.
#[must_use]
pub fn tower_resilience_open<K: Kind>() -> Run {
    let service = tower_resilience_layer().layer(K::Leaf::default());
    runtime().block_on(service.force_open());
    Run::service(Comes::Refused, service, K::same())
}

/// recloser, closed: half of the last 100 calls.
#[must_use]
pub fn recloser<K: Kind>() -> Run {
    let recloser = recloser::Recloser::custom().error_rate(0.5).closed_len(100).build();
    let breaker = recloser::AsyncRecloser::from(recloser);
    let mut same = K::same();
    Run::futures(Comes::Through, move || {
        let request = black_box(same());
        breaker.call(async move { K::Leaf::default().call(request).await })
    })
}

/// failsafe, closed, by failures in a row.
#[must_use]
pub fn failsafe<K: Kind>() -> Run {
    let policy =
        failsafe::failure_policy::consecutive_failures(5, failsafe::backoff::constant(HOUR));
    let breaker = failsafe::Config::new().failure_policy(policy).build();
    let mut same = K::same();
    Run::futures(Comes::Through, move || {
        let request = black_box(same());
        breaker.call(async move { K::Leaf::default().call(request).await })
    })
}
