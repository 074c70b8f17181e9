//! What breakers of one layer have in common.
use crate::{hub::Hub, settings::Settings};
use std::sync::Arc;

/// What breakers of one layer have in common: one word in each of them.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) settings: Arc<Settings>,
    pub(crate) hub: Arc<Hub>,
}

impl Ground {
    pub(crate) fn new(settings: Settings, hub: Arc<Hub>) -> Self {
        Self { settings: Arc::new(settings), hub }
    }

    /// The same for other settings.
    pub(crate) fn with(&self, settings: Settings) -> Self {
        Self::new(settings, self.hub.clone())
    }
}
