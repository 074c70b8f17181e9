//! What the builder reports to besides observers.
use super::Builder;
use crate::rollout::{ShadowEnd, ShadowEnds};
use std::sync::Arc;

impl Builder {
    /// Tells `on_end` how each call in [shadow mode](crate::Mode) would have ended under the stack; the
    /// caller gets the tool's own end. Called on the path of the call, so it must not block.
    pub fn on_shadow_end(
        mut self,
        on_end: impl Fn(&ShadowEnd<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.shadow_ends = Some(ShadowEnds(Arc::new(on_end)));
        self
    }
}
