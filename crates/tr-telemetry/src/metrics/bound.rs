//! Instruments with their labels, put together once.
#[cfg(not(feature = "bound"))]
use opentelemetry::metrics::{Counter, Histogram};
use opentelemetry::{KeyValue, metrics};

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
