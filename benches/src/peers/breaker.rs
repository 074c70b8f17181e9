//! Breakers: tower-resilience, recloser, failsafe.
use crate::{
    run::{Comes, Run, runtime},
    small::{Leaf, Small},
};
use failsafe::futures::CircuitBreaker as _;
use std::{hint::black_box, time::Duration};
use tower::Layer;
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
pub fn tower_resilience_closed() -> Run {
    Run::service(Comes::Through, tower_resilience_layer().layer(Leaf), Small::same)
}

/// tower-resilience, open for an hour.
#[must_use]
pub fn tower_resilience_open() -> Run {
    let service = tower_resilience_layer().layer(Leaf);
    runtime().block_on(service.force_open());
    Run::service(Comes::Refused, service, Small::same)
}

/// recloser, closed: half of the last 100 calls.
#[must_use]
pub fn recloser_closed() -> Run {
    let recloser = recloser::Recloser::custom().error_rate(0.5).closed_len(100).build();
    let breaker = recloser::AsyncRecloser::from(recloser);
    Run::futures(Comes::Through, move || {
        let request = black_box(Small::same());
        breaker.call(async move { Leaf.answer(request) })
    })
}

/// failsafe, closed, by failures in a row.
#[must_use]
pub fn failsafe_consecutive() -> Run {
    let policy =
        failsafe::failure_policy::consecutive_failures(5, failsafe::backoff::constant(HOUR));
    let breaker = failsafe::Config::new().failure_policy(policy).build();
    Run::futures(Comes::Through, move || {
        let request = black_box(Small::same());
        breaker.call(async move { Leaf.answer(request) })
    })
}
