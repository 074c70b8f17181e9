//! The end of a call as labels say it, and instruments with their labels, put together once.
use opentelemetry::{KeyValue, metrics};
use std::time::Duration;
use tr_core::{DedupeScope, Effect, Status, SystemClock, classify};

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

/// A code as a label: a known one, or what an HTTP status (`http_503`) means, so that tools cannot create unbounded
/// labels.
pub(super) fn closed(code: &str) -> &'static str {
    let status = code.strip_prefix("http_").and_then(|status| status.parse().ok());
    let means = |status| classify::http_response(status, |_| None, &SystemClock).end.code;
    let code = status.map_or(code, means);
    classify::Kind::from_code(code).map_or(OTHER, classify::Kind::code)
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

/// Instruments with their labels: bound to them, where the feature is on.
macro_rules! labelled {
    ($($name:ident: $instrument:ident or $bound:ident of $value:ty, $put:ident;)*) => {$(
        #[cfg(feature = "bound")]
        pub(super) struct $name(metrics::$bound<$value>);

        #[cfg(not(feature = "bound"))]
        pub(super) struct $name(metrics::$instrument<$value>, Box<[KeyValue]>);

        impl $name {
            pub(super) fn new(instrument: &metrics::$instrument<$value>, labels: &[KeyValue]) -> Self {
                #[cfg(feature = "bound")]
                return Self(instrument.bind(labels));
                #[cfg(not(feature = "bound"))]
                Self(instrument.clone(), labels.into())
            }

            #[inline]
            pub(super) fn $put(&self, value: $value) {
                #[cfg(feature = "bound")]
                self.0.$put(value);
                #[cfg(not(feature = "bound"))]
                self.0.$put(value, &self.1);
            }
        }
    )*};
}

labelled! {
    Count: Counter or BoundCounter of u64, add;
    Times: Histogram or BoundHistogram of f64, record;
}

/// The instruments of a set: each with its field, its type, its name, what it counts, and how else it is made.
macro_rules! instruments {
    ($($field:ident: $type:ty = $make:ident($name:literal $(, $what:literal)?) $(.$how:ident($with:expr))*;)*) => {
        pub(super) struct Instruments {
            $(pub(super) $field: $type,)*
        }

        impl Instruments {
            pub(super) fn new(meter: &opentelemetry::metrics::Meter) -> Self {
                Self {
                    $($field: meter.$make($name)$(.with_description($what))?$(.$how($with))*.build(),)*
                }
            }
        }
    };
}

pub(super) use instruments;
