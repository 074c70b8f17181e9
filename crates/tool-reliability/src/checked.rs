//! Validates params against their tool's schema, before anything is recorded or run.
#[cfg(feature = "input-schema")]
mod service;

#[cfg(feature = "input-schema")]
pub use self::service::{Checked, CheckedFuture};

use tower_layer::Layer;

/// With the feature `input-schema`, refuses calls whose params fail the input schema in their
/// tool's manifest; without it, puts nothing around a service. Its place is inside of whatever counts
/// failures, and outside of records.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckedLayer;

/// What [`CheckedLayer`] makes of a service.
#[cfg(feature = "input-schema")]
pub type MaybeChecked<S> = Checked<S>;

/// What [`CheckedLayer`] makes of a service.
#[cfg(not(feature = "input-schema"))]
pub type MaybeChecked<S> = S;

impl<S> Layer<S> for CheckedLayer {
    type Service = MaybeChecked<S>;

    #[cfg(feature = "input-schema")]
    fn layer(&self, inner: S) -> Checked<S> {
        Checked { inner }
    }

    #[cfg(not(feature = "input-schema"))]
    fn layer(&self, inner: S) -> S {
        inner
    }
}
