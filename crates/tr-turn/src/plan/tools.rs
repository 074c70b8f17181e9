//! Which tools there are, and what is known of them.
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tr_core::{Effect, ToolCatalog, ToolId, ToolManifest};

/// Which tools there are, and what is known of them.
///
/// What a catalogue says of a tool holds for each call of it that says nothing else: effect,
/// `required`, `default_value`, `alternatives`, `priority`, and `depends_on`, which means the
/// plan's calls of those tools.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    catalog: ToolCatalog,
    /// `None`: any.
    offered: Option<HashSet<Box<str>>>,
}

impl Tools {
    /// Whatever a plan names is taken to be there, and nothing is known of it.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Takes what is known of tools from `catalog`.
    #[must_use]
    pub fn catalog(mut self, catalog: ToolCatalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// Only these tools are there, by their names. A required call that none of them can do is
    /// refused with its plan; an optional one is left out, and an alternative takes its place.
    #[must_use]
    pub fn offered<N: Into<Box<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.offered = Some(names.into_iter().map(Into::into).collect());
        self
    }

    pub(super) fn offers(&self, tool: &ToolId) -> bool {
        let offered = self.offered.as_ref();
        offered.is_none_or(|names| names.contains(tool.label()) || names.contains(tool.name()))
    }

    pub(super) const fn undeclared_effect(&self) -> Effect {
        self.catalog.undeclared_effect()
    }

    pub(super) fn by_label(&self) -> HashMap<&str, &Arc<ToolManifest>> {
        self.catalog.iter().map(|manifest| (manifest.tool.label(), manifest)).collect()
    }
}
