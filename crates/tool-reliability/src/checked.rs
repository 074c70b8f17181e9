//! Validates params against their tool's schema, before anything is recorded or run.
#[cfg(feature = "input-schema")]
mod service;

#[cfg(feature = "input-schema")]
pub use self::service::{Checked, CheckedFuture};

use tower_layer::Layer;

/// With the feature `input-schema`, refuses calls whose params fail the input schema in their
/// tool's manifest; without it, puts nothing around a service.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckedLayer(());

impl CheckedLayer {
    /// Inside of whatever counts failures, and outside of records.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

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
