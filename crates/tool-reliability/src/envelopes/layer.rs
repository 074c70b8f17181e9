//! The settings of [`Envelopes`].
use super::{
    ids::Ids,
    running::Canceller,
    service::Envelopes,
    shared::{Shared, Tools},
};
use crate::config::Live;
use std::sync::Arc;
use tower_layer::Layer;
use tr_config::ToolCatalog;
use tr_core::{ConfigError, WallClock, internal::Faults, setters};

/// Puts [`Envelopes`] around services; all of them share the calls that can be cancelled.
#[derive(Clone, Debug, Default)]
pub struct EnvelopesLayer(Arc<Shared>);

/// Builds an [`EnvelopesLayer`].
#[derive(Debug, Default)]
#[must_use = "nothing is built until `build`"]
pub struct EnvelopesBuilder {
    shared: Shared,
}

impl EnvelopesLayer {
    /// Starts from the default settings.
    pub fn builder() -> EnvelopesBuilder {
        EnvelopesBuilder::default()
    }

    /// Cancels running calls by their ids.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.0.running.clone()
    }
}

impl<S> Layer<S> for EnvelopesLayer {
    type Service = Envelopes<S>;

    fn layer(&self, inner: S) -> Envelopes<S> {
        Envelopes::of(inner, self.0.clone())
    }
}

impl EnvelopesBuilder {
    setters! {
        /// Gives each call what this catalog declares of its tool. Without one, every tool counts
        /// as mutating, and so is not retried once it may have run.
        fn catalog(catalog: ToolCatalog) { shared.tools = Tools::Declared(catalog) }

        /// The same with the catalog of a configuration that can be reloaded.
        fn live(live: Live) { shared.tools = Tools::Live(live) }

        /// Sets how many bytes a request may have; 2 MiB by default. What is longer is refused
        /// unread.
        fn max_request_bytes(most: usize) { shared.most_bytes = most }

        /// Sets how many calls with a `cancellationId` may run at a time; 10,000 by default. Beyond
        /// that such calls are refused ([`TooManyCancellable`](super::TooManyCancellable)).
        fn max_cancellable(most: usize) { shared.running = Canceller::new(most) }

        /// Sets the wall clock, by which `deadlineAtMs` is understood and request ids are made; the
        /// machine's by default.
        fn clock(clock: impl WallClock + 'static) { shared.ids = Ids::new(clock) }
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// If a bound is 0.
    pub fn build(self) -> Result<EnvelopesLayer, ConfigError> {
        let Shared { most_bytes, running, .. } = &self.shared;
        let mut faults = Faults::default();
        faults.check("max_request_bytes", most_bytes, *most_bytes > 0, "at least 1");
        faults.check("max_cancellable", running.most(), running.most() > 0, "at least 1");
        faults.into_result("envelopes")?;
        Ok(EnvelopesLayer(Arc::new(self.shared)))
    }
}
