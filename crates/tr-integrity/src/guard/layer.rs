//! [`ModelGuardLayer`] around the model's API, and its builder.
use crate::session::Sessions;
use std::{marker::PhantomData, sync::Arc};
use tr_core::{DefaultPolicy, Observer, WhenStoreFails, setters};

/// The model's answers arrive as a whole: [`ModelEndOf`](crate::ModelEndOf) judges them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whole;

/// The model's answers are streamed: [`BodyOf`](crate::BodyOf) gives their body, and the guard watches its
/// pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streamed;

/// Applies a [`ModelGuard`](super::ModelGuard). `M` says how the model's answers arrive: [`Whole`] or [`Streamed`].
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
    /// Guards the calls in these sessions, with the sessions' configuration.
    #[must_use]
    pub fn new(sessions: Sessions) -> Self {
        Self::builder(sessions).build()
    }

    /// Guards calls whose answers are streamed: an `http::Response` with its body (feature `http`),
    /// a stream of `Chunks` (feature `stream`), or any response for which the policy implements
    /// [`BodyOf`](crate::BodyOf).
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
    setters! {
        /// Notifies `observer` of blocked calls, repairs, rollbacks, and changes that the store did
        /// not record.
        fn observer(observer: Arc<dyn Observer>) { layer.observer = Some(observer) }

        /// What to do with a call whose checkpoint the sessions' store does not record:
        /// [`WhenStoreFails::Refuse`] by default.
        fn when_store_fails(when: WhenStoreFails) { layer.when_store_fails = when }
    }

    /// Sets the policy that reads requests and responses; [`DefaultPolicy`] by default.
    pub fn policy<B>(self, policy: B) -> ModelGuardBuilder<B, M> {
        let ModelGuardLayer { sessions, observer, when_store_fails, mode, .. } = self.layer;
        let layer = ModelGuardLayer { sessions, observer, when_store_fails, policy, mode };
        ModelGuardBuilder { layer }
    }

    /// Accepts streamed answers, and watches their pieces.
    pub fn streamed(self) -> ModelGuardBuilder<A, Streamed> {
        let ModelGuardLayer { sessions, observer, when_store_fails, policy, .. } = self.layer;
        let mode = PhantomData;
        let layer = ModelGuardLayer { sessions, observer, when_store_fails, policy, mode };
        ModelGuardBuilder { layer }
    }

    /// Builds the layer. This cannot fail: the settings are validated when the sessions are built.
    #[must_use]
    pub fn build(self) -> ModelGuardLayer<A, M> {
        self.layer
    }
}
