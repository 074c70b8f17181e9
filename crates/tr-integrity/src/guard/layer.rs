//! The layer and its builder.
use super::{
    service::ModelGuard,
    take::{Streamed, Whole},
};
use crate::{cycle::WhenStoreFails, session::Sessions};
use std::{marker::PhantomData, sync::Arc};
use tower_layer::Layer;
use tr_core::{DefaultPolicy, Observer};

/// Applies a [`ModelGuard`]. `M` says how the model's answers come: [`Whole`] or [`Streamed`].
#[derive(Clone, Debug)]
pub struct ModelGuardLayer<A = DefaultPolicy, M = Whole> {
    pub(super) sessions: Sessions,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) when_store_fails: WhenStoreFails,
    pub(super) policy: A,
    pub(super) mode: PhantomData<M>,
}

/// Configures a [`ModelGuardLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ModelGuardBuilder<A = DefaultPolicy, M = Whole> {
    layer: ModelGuardLayer<A, M>,
}

impl ModelGuardLayer {
    /// Guards the calls in these sessions, as their configuration says.
    #[must_use]
    pub fn new(sessions: Sessions) -> Self {
        Self::builder(sessions).build()
    }

    /// Guards calls whose answers come in pieces: an `http::Response` with its body (feature
    /// `http`), a stream of `Chunks` (feature `stream`), or any response for
    /// which [`BodyOf`](crate::BodyOf) is answered.
    #[must_use]
    pub fn streamed(sessions: Sessions) -> ModelGuardLayer<DefaultPolicy, Streamed> {
        Self::builder(sessions).streamed().build()
    }

    /// Starts from the defaults.
    pub const fn builder(sessions: Sessions) -> ModelGuardBuilder {
        let layer = ModelGuardLayer {
            sessions,
            observer: None,
            when_store_fails: WhenStoreFails::Refuse,
            policy: DefaultPolicy,
            mode: PhantomData,
        };
        ModelGuardBuilder { layer }
    }
}

impl<A, M> ModelGuardBuilder<A, M> {
    /// Tells `observer` of blocked calls, repairs, rollbacks, and of what the store did not record.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.layer.observer = Some(observer);
        self
    }

    /// Sets the policy that reads requests and responses; [`DefaultPolicy`] by default.
    pub fn policy<B>(self, policy: B) -> ModelGuardBuilder<B, M> {
        let ModelGuardLayer { sessions, observer, when_store_fails, mode, .. } = self.layer;
        let layer = ModelGuardLayer { sessions, observer, when_store_fails, policy, mode };
        ModelGuardBuilder { layer }
    }

    /// What to do with a call whose checkpoint the sessions' store does not record:
    /// [`WhenStoreFails::Refuse`] by default.
    pub fn when_store_fails(mut self, when: WhenStoreFails) -> Self {
        self.layer.when_store_fails = when;
        self
    }

    /// Takes answers that come in pieces, and watches them on their way.
    pub fn streamed(self) -> ModelGuardBuilder<A, Streamed> {
        let ModelGuardLayer { sessions, observer, when_store_fails, policy, .. } = self.layer;
        let mode = PhantomData;
        let layer = ModelGuardLayer { sessions, observer, when_store_fails, policy, mode };
        ModelGuardBuilder { layer }
    }

    /// The layer. Nothing can be wrong with it: what can is checked where the sessions are made.
    #[must_use]
    pub fn build(self) -> ModelGuardLayer<A, M> {
        self.layer
    }
}

impl<S, A: Clone, M: Clone> Layer<S> for ModelGuardLayer<A, M> {
    type Service = ModelGuard<S, A, M>;

    fn layer(&self, inner: S) -> Self::Service {
        ModelGuard::new(inner, self.clone())
    }
}
