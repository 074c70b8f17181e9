//! The available tools and their manifests.
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tr_config::ToolCatalog;
use tr_core::{Effect, ToolId, ToolManifest, setters};

/// The available tools and their manifests.
///
/// A tool's manifest gives the defaults of its calls: effect, `required`, `default_value`,
/// `alternatives`, `priority`, and `depends_on`, which refers to the plan's calls of those tools.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    catalog: ToolCatalog,
    /// `None`: any.
    offered: Option<HashSet<Box<str>>>,
}

impl Tools {
    /// Every tool that a plan names counts as available, without a manifest.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    setters! {
        /// Takes the manifests from `catalog`.
        fn catalog(catalog: ToolCatalog) { catalog = catalog }
    }

    /// Only these tools are available, by their names. A plan with a required call without an
    /// available tool is refused; an optional one is skipped, or its alternative runs.
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
