//! What all services of a layer share.
use super::{ids::Ids, running::Canceller};
use crate::config::Live;
use tr_config::ToolCatalog;
use tr_core::{SystemClock, ToolCall};

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tools: Tools,
    /// How many bytes a request may have.
    pub(super) most_bytes: usize,
    pub(super) running: Canceller,
    pub(super) ids: Ids,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            tools: Tools::Declared(ToolCatalog::default()),
            most_bytes: 2 << 20,
            running: Canceller::new(10_000),
            ids: Ids::new(SystemClock),
        }
    }
}

/// What is declared of the tools.
#[derive(Debug)]
pub(super) enum Tools {
    Declared(ToolCatalog),
    Live(Live),
}

impl Tools {
    pub(super) fn manifested(&self, call: ToolCall) -> ToolCall {
        match self {
            Self::Declared(catalog) => catalog.manifested(call),
            Self::Live(live) => live.catalog().manifested(call),
        }
    }
}
