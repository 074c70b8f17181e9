//! The layer and its builder.
use crate::session::Sessions;
use std::sync::Arc;
use tr_core::{DefaultPolicy, Observer, WhenStoreFails, setters};

/// Applies an [`Integrity`](super::Integrity).
#[derive(Clone, Debug)]
pub struct IntegrityLayer<A = DefaultPolicy> {
    pub(super) sessions: Option<Sessions>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) when_store_fails: WhenStoreFails,
    pub(super) policy: A,
}

/// Configures an [`IntegrityLayer`]; without sessions it passes every call through.
#[derive(Clone, Debug)]
#[must_use]
pub struct IntegrityBuilder<A = DefaultPolicy> {
    layer: IntegrityLayer<A>,
}

impl IntegrityLayer {
    /// Records the cycles of these sessions.
    #[must_use]
    pub fn new(sessions: Sessions) -> Self {
        Self::builder().sessions(sessions).build()
    }

    /// Starts without sessions.
    pub const fn builder() -> IntegrityBuilder {
        let layer = IntegrityLayer {
            sessions: None,
            observer: None,
            when_store_fails: WhenStoreFails::Refuse,
            policy: DefaultPolicy,
        };
        IntegrityBuilder { layer }
    }
}

impl<A> IntegrityBuilder<A> {
    setters! {
        /// Records the cycles of these sessions, in the sessions' own mode.
        fn sessions(sessions: Sessions) { layer.sessions = Some(sessions) }

        /// Tells `observer` of cycles that failed, were abandoned or could not be recorded.
        fn observer(observer: Arc<dyn Observer>) { layer.observer = Some(observer) }

        /// What to do with a call whose intent the sessions' store does not record:
        /// [`WhenStoreFails::Refuse`] by default.
        fn when_store_fails(when: WhenStoreFails) { layer.when_store_fails = when }
    }

    /// Sets the policy that reads requests and responses; [`DefaultPolicy`] by default.
    pub fn policy<B>(self, policy: B) -> IntegrityBuilder<B> {
        let IntegrityLayer { sessions, observer, when_store_fails, .. } = self.layer;
        let layer = IntegrityLayer { sessions, observer, when_store_fails, policy };
        IntegrityBuilder { layer }
    }

    /// Builds the layer. This cannot fail: the settings are validated when the sessions are built.
    #[must_use]
    pub fn build(self) -> IntegrityLayer<A> {
        self.layer
    }
}
