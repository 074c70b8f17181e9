//! Metrics and spans beside the SDK's own and tracing-opentelemetry.
use benches::{criterion::compare, peers::telemetry};
use criterion::{Criterion, criterion_group, criterion_main};

fn telemetry(criterion: &mut Criterion) {
    compare(
        criterion,
        "telemetry",
        &[
            ("metrics", telemetry::our_metrics),
            ("metrics, SDK", telemetry::sdk_metrics),
            ("span", telemetry::our_span),
            ("span, tracing-opentelemetry", telemetry::tracing_span),
        ],
    );
}

criterion_group!(benches, telemetry);
criterion_main!(benches);
