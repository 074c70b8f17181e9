//! Metrics in memory.
use opentelemetry::{
    KeyValue,
    metrics::{Meter, MeterProvider as _},
};
use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
    data::{AggregatedMetrics, MetricData, ScopeMetrics},
};
use std::collections::BTreeMap;

/// Metrics in memory: each series as `name{label=value,…}`, with its value (a count for histograms).
#[derive(Clone)]
pub(crate) struct Metered {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Metered {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), exporter }
    }

    pub(crate) fn meter(&self) -> Meter {
        self.provider.meter("test")
    }

    pub(crate) fn read(&self) -> BTreeMap<String, f64> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let mut series = BTreeMap::new();
        for resource in self.exporter.get_finished_metrics().unwrap() {
            for metric in resource.scope_metrics().flat_map(ScopeMetrics::metrics) {
                let mut put = |labels: String, value: f64| {
                    let known = series.insert(format!("{}{{{labels}}}", metric.name()), value);
                    assert_eq!(known, None, "a series came twice");
                };
                match metric.data() {
                    AggregatedMetrics::U64(data) => points(data, |n| n as f64, &mut put),
                    AggregatedMetrics::F64(data) => points(data, |n| n, &mut put),
                    AggregatedMetrics::I64(data) => points(data, |n| n as f64, &mut put),
                }
            }
        }
        series
    }
}

fn points<T: Copy>(data: &MetricData<T>, number: fn(T) -> f64, put: &mut impl FnMut(String, f64)) {
    match data {
        MetricData::Sum(sum) => {
            sum.data_points()
                .for_each(|point| put(labels(point.attributes()), number(point.value())));
        }
        MetricData::Gauge(gauge) => {
            gauge
                .data_points()
                .for_each(|point| put(labels(point.attributes()), number(point.value())));
        }
        MetricData::Histogram(times) => {
            times
                .data_points()
                .for_each(|point| put(labels(point.attributes()), point.count() as f64));
        }
        MetricData::ExponentialHistogram(_) => unreachable!("none was asked for"),
    }
}

fn labels<'k>(attributes: impl Iterator<Item = &'k KeyValue>) -> String {
    let mut labels: Vec<_> = attributes.map(|kv| format!("{}={}", kv.key, kv.value)).collect();
    labels.sort();
    labels.join(",")
}
