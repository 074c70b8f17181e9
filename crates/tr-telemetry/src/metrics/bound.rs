//! The end of a call as labels say it, and instruments with their labels, put together once.
#[cfg(not(feature = "bound"))]
use opentelemetry::metrics::{Counter, Histogram};
use opentelemetry::{KeyValue, metrics};
use std::time::Duration;
use tr_core::{DedupeScope, Effect, Status, classify::Kind};

/// How a call ended, as labels say it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'r> {
    pub(crate) status: Status,
    pub(crate) scope: DedupeScope,
    pub(crate) effect: Effect,
    pub(crate) code: &'r str,
    pub(crate) elapsed: Duration,
}

/// The label of tools past the bound, and of unknown codes.
pub(super) const OTHER: &str = "_other";

/// A code as a label: a known one, so that tools cannot create unbounded labels.
pub(super) fn closed(code: &str) -> &'static str {
    Kind::from_code(code).map_or(OTHER, Kind::code)
}

pub(super) const fn scope_label(scope: DedupeScope) -> &'static str {
    match scope {
        DedupeScope::Session => "session",
        DedupeScope::Global => "global",
    }
}

pub(super) fn millis(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * 1e3
}

/// A counter with its labels.
#[cfg(feature = "bound")]
pub(super) struct Count(metrics::BoundCounter<u64>);

/// A histogram with its labels.
#[cfg(feature = "bound")]
pub(super) struct Times(metrics::BoundHistogram<f64>);

#[cfg(feature = "bound")]
impl Count {
    pub(super) fn new(counter: &metrics::Counter<u64>, labels: &[KeyValue]) -> Self {
        Self(counter.bind(labels))
    }

    #[inline]
    pub(super) fn add_one(&self) {
        self.0.add(1);
    }
}

#[cfg(feature = "bound")]
impl Times {
    pub(super) fn new(histogram: &metrics::Histogram<f64>, labels: &[KeyValue]) -> Self {
        Self(histogram.bind(labels))
    }

    #[inline]
    pub(super) fn record(&self, value: f64) {
        self.0.record(value);
    }
}

/// A counter with its labels.
#[cfg(not(feature = "bound"))]
pub(super) struct Count(Counter<u64>, Box<[KeyValue]>);

/// A histogram with its labels.
#[cfg(not(feature = "bound"))]
pub(super) struct Times(Histogram<f64>, Box<[KeyValue]>);

#[cfg(not(feature = "bound"))]
impl Count {
    pub(super) fn new(counter: &metrics::Counter<u64>, labels: &[KeyValue]) -> Self {
        Self(counter.clone(), labels.into())
    }

    #[inline]
    pub(super) fn add_one(&self) {
        self.0.add(1, &self.1);
    }
}

#[cfg(not(feature = "bound"))]
impl Times {
    pub(super) fn new(histogram: &metrics::Histogram<f64>, labels: &[KeyValue]) -> Self {
        Self(histogram.clone(), labels.into())
    }

    #[inline]
    pub(super) fn record(&self, value: f64) {
        self.0.record(value, &self.1);
    }
}
