//! Events without a subscriber; metrics and spans beside the SDK's own and tracing-opentelemetry.
#[cfg(feature = "peers")]
use benches::peers::telemetry as peers;
use benches::{
    call::Leaf as Call,
    criterion::group,
    http::Leaf as Http,
    kinds,
    ours::{bare, telemetry},
    small::Leaf as Small,
};
use criterion::{Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    group(
        criterion,
        "telemetry",
        &[
            ("no layer", kinds!(bare: Small, Call, Http)),
            ("events, no subscriber", kinds!(telemetry::events: Small, Call, Http)),
            #[cfg(feature = "peers")]
            ("metrics", &[("tool call", peers::our_metrics)]),
            #[cfg(feature = "peers")]
            ("metrics, OpenTelemetry SDK", &[("tool call", peers::sdk_metrics)]),
            #[cfg(feature = "peers")]
            ("unsampled span", &[("tool call", peers::our_span)]),
            #[cfg(feature = "peers")]
            ("unsampled span, tracing-opentelemetry", &[("tool call", peers::tracing_span)]),
            ("redaction", &[("1 KiB of text", telemetry::redaction)]),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
