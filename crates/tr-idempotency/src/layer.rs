//! The layer.
use crate::{
    builder::Builder,
    handle::Handle,
    service::{Idempotency, Shared},
};
use std::fmt;
use tower_layer::Layer;
use tr_core::{DefaultPolicy, ToolOutcome, internal::Sharded};

/// Wraps services in [`Idempotency`]; all services of one layer share one set of records.
///
/// `V` is the stored form of a response: a [`ToolOutcome`], or what
/// [`builder_for`](IdempotencyLayer::builder_for) is called for.
pub struct IdempotencyLayer<A = DefaultPolicy, V = ToolOutcome> {
    answers: A,
    shared: Sharded<Shared<V>>,
}

impl IdempotencyLayer {
    /// Starts from the defaults, for records of [`ToolOutcome`]s.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts from the defaults, for records of `V`: what the policy's
    /// [`StoreResponse`](tr_core::StoreResponse) keeps of another type of responses.
    pub fn builder_for<V>() -> Builder<DefaultPolicy, V> {
        Builder::default()
    }
}

impl Default for IdempotencyLayer {
    /// Records in this process, by the defaults of [`Builder`].
    fn default() -> Self {
        Builder::default().build_unchecked()
    }
}

impl<A, V> IdempotencyLayer<A, V> {
    pub(crate) fn new(answers: A, shared: Shared<V>) -> Self {
        Self { answers, shared: Sharded::new(shared) }
    }

    /// The handle for listing, settling and clearing records.
    #[must_use]
    pub fn handle(&self) -> Handle<V> {
        Handle::new(self.shared.whole())
    }
}

impl<A: Copy, V> Clone for IdempotencyLayer<A, V> {
    fn clone(&self) -> Self {
        Self { answers: self.answers, shared: self.shared.whole() }
    }
}

impl<A, V> fmt::Debug for IdempotencyLayer<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

impl<S, A: Copy, V> Layer<S> for IdempotencyLayer<A, V> {
    type Service = Idempotency<S, A, V>;

    fn layer(&self, inner: S) -> Self::Service {
        Idempotency::new(inner, self.answers, self.shared.whole())
    }
}
