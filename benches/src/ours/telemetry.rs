//! Telemetry without an exporter; metrics and spans are beside the SDK's, in `peers`.
use super::GOOD;
use crate::{
    kind::Kind,
    run::{Comes, Run},
};
use std::hint::black_box;
use tower::Layer;
use tr_telemetry::{
    Signals, TelemetryLayer,
    redact::{Redact as _, Redactor},
};

/// Events that no subscriber wants.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn events<K: Kind>() -> Run {
    let signals = Signals::builder().build().expect(GOOD);
    let layer = TelemetryLayer::call(&signals).policy(K::Policy::default());
    Run::service(Comes::Through, layer.layer(K::Leaf::default()), K::same())
}

/// Redaction of 1 KiB of clean text.
///
/// # Panics
/// If the text is not 1 KiB, or not clean.
#[must_use]
pub fn redaction() -> Run {
    let redactor = Redactor::default();
    let sentence =
        "The connection to the flight search was reset by the other side; 3 of 4 legs were found. ";
    let text = sentence.repeat(12)[..1024].to_owned();
    assert_eq!(redactor.redact(&text), text, "the text is clean");
    Run::function(move || black_box(redactor.redact(&text)).len())
}
