//! Catalogs of manifests made in code.
use super::{
    CatalogError, Entry, MAX_TOOLS, ToolCatalog,
    build::{TOOLS, refuse},
    relations::{Declared, relate},
};
use tr_core::ToolManifest;
use tr_wire::read::{At, Faults};

impl ToolCatalog {
    /// A catalog of manifests made in code, which name each other by their labels.
    ///
    /// # Errors
    /// Names every mistake: a duplicate tool, an unknown tool, a dependency cycle, an invalid schema.
    pub fn new(manifests: impl IntoIterator<Item = ToolManifest>) -> Result<Self, CatalogError> {
        let manifests: Vec<_> = manifests.into_iter().collect();
        let mut faults = Faults::of_configuration("");
        if manifests.len() > MAX_TOOLS {
            refuse(&TOOLS, "at most 10000 tools", &manifests.len().to_string(), &mut faults);
            return Err(CatalogError::new(faults, ""));
        }
        let declared = manifests.iter().map(|manifest| Declared {
            key: manifest.tool.label().into(),
            id: Some(manifest.tool.clone()),
            depends_on: manifest.depends_on.clone(),
            alternatives: manifest.alternatives.clone(),
        });
        relate(&declared.collect::<Vec<_>>(), &mut faults);
        let entries = manifests.into_iter().map(|manifest| {
            let label: Box<str> = manifest.tool.label().into();
            Entry::new(manifest, &At::Member(&TOOLS, &label), &mut faults)
        });
        let entries = entries.collect();
        match faults.is_empty() {
            true => Ok(Self::of(entries, None)),
            false => Err(CatalogError::new(faults, "")),
        }
    }
}
