//! Catalogues of manifests made in code.
use super::{
    CatalogError, Entry, MAX_TOOLS, ToolCatalog,
    build::refuse,
    form::References,
    relations::{Declared, relate},
    shape::{At, SourceLocation},
};
use tr_core::ToolManifest;
use tr_wire::read::Faults;

impl ToolCatalog {
    /// A catalogue of manifests made in code, which name each other by their labels.
    ///
    /// # Errors
    /// Names every mistake: a duplicate tool, an unknown tool, a dependency cycle, an invalid schema.
    pub fn new(manifests: impl IntoIterator<Item = ToolManifest>) -> Result<Self, CatalogError> {
        let manifests: Vec<_> = manifests.into_iter().collect();
        let mut faults = Faults::of_configuration("");
        if manifests.len() > MAX_TOOLS {
            let found = manifests.len().to_string();
            refuse(&location("/tools".into()), "at most 10000 tools", &found, &mut faults);
            return Err(CatalogError::new(faults, ""));
        }
        let declared: Vec<_> = manifests.iter().map(declared).collect();
        relate(&declared, &mut faults);
        let entries = manifests.into_iter().map(|manifest| {
            let schema = location(format!("/tools/{}/input_schema", manifest.tool.label()));
            Entry::new(manifest, Some(&schema), &mut faults)
        });
        let entries = entries.collect();
        match faults.is_empty() {
            true => Ok(Self::of(entries, None)),
            false => Err(CatalogError::new(faults, "")),
        }
    }
}

const fn location(pointer: String) -> SourceLocation {
    SourceLocation { pointer, offset: None }
}

fn declared(manifest: &ToolManifest) -> Declared {
    let label = manifest.tool.label();
    let references = |names: &[Box<str>], key: &str| -> References {
        let at = |i| location(format!("/tools/{label}/{key}/{i}"));
        let name = |(i, name)| At { value: Box::clone(name), location: at(i) };
        names.iter().enumerate().map(name).collect()
    };
    Declared {
        key: label.into(),
        id: Some(manifest.tool.clone()),
        location: location(format!("/tools/{label}")),
        depends_on: references(&manifest.depends_on, "depends_on"),
        alternatives: references(&manifest.alternatives, "alternatives"),
    }
}
