//! From a text to a catalog.
use super::{
    CatalogError, MAX_TOOLS, ToolCatalog,
    build::{self, DEFAULTS, TOOLS, refuse},
    form::Catalog,
    relations::{Declared, relate},
};
use std::mem;
use tr_core::Effect;
use tr_wire::read::{At, Faults, Language, Shape as _, configuration};

impl ToolCatalog {
    /// Reads a catalog in JSON.
    ///
    /// # Errors
    /// Names every mistake with its line.
    pub fn from_json(text: &str) -> Result<Self, CatalogError> {
        Self::from_text(text, Language::Json)
    }

    /// Reads a catalog in TOML.
    ///
    /// # Errors
    /// Names every mistake with its line.
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str) -> Result<Self, CatalogError> {
        Self::from_text(text, Language::Toml)
    }

    /// Reads a catalog in this language.
    ///
    /// # Errors
    /// Names every mistake with its line.
    pub fn from_text(text: &str, language: Language) -> Result<Self, CatalogError> {
        let mut faults = Faults::of_configuration(text);
        let catalog = configuration(text, language, &mut faults, |node, faults| {
            Catalog::read(node, faults).map(|form| build(form, faults))
        });
        match catalog {
            Some(catalog) if faults.is_empty() => Ok(catalog),
            _ => Err(CatalogError::new(faults, text)),
        }
    }
}

pub(crate) fn build(form: Catalog, faults: &mut Faults) -> ToolCatalog {
    if form.defaults.is_some() && form.tools.is_none() {
        let expected = "defaults of tools that are listed under `tools`";
        refuse(&DEFAULTS, expected, "no tools", faults);
    }
    let mut tools = form.tools.unwrap_or_default();
    let mut defaults = form.defaults.unwrap_or_default();
    build::check_defaults(&mut defaults, faults);
    if tools.len() > MAX_TOOLS {
        refuse(&TOOLS, "at most 10000 tools", &tools.len().to_string(), faults);
        tools.truncate(MAX_TOOLS);
    }
    let declared = tools.iter_mut().map(|(key, tool)| {
        let mut declared = Declared { key: key.clone(), ..Declared::default() };
        if let Some(tool) = tool {
            *tool = build::with_defaults(mem::take(tool), key, &defaults, faults);
            declared.id = Some(build::identity(key, tool));
            declared.depends_on = tool.depends_on.take().unwrap_or_default();
            declared.alternatives = tool.alternatives.take().unwrap_or_default();
        }
        declared
    });
    let declared: Vec<_> = declared.collect();
    let related = relate(&declared, faults);
    let (mut entries, mut checks) = (Vec::with_capacity(tools.len()), Vec::new());
    for (((key, tool), declared), related) in tools.into_iter().zip(declared).zip(related) {
        let (Some(mut tool), Some(id)) = (tool, declared.id) else { continue };
        let at = At::Member(&TOOLS, &key);
        let endpoint = build::endpoint(&mut tool, &at, faults);
        let mut manifest = build::manifest(id, tool);
        checks.extend(manifest.check.as_ref().map(|check| (key.clone(), check.tool.clone())));
        (manifest.depends_on, manifest.alternatives) = related;
        let mut entry = super::Entry::new(manifest, &at, faults);
        entry.endpoint = endpoint;
        entries.push(entry);
    }
    for (key, asked) in checks {
        let asked = entries.iter().find(|it| it.manifest.tool.name() == &*asked);
        if asked.is_some_and(|it| it.manifest.effect.is_some_and(|it| it != Effect::ReadOnly)) {
            let at = At::Member(&TOOLS, &key);
            let at = At::Member(&at, "check");
            let expected = "a tool with effect = \"read_only\"";
            refuse(&At::Member(&at, "tool"), expected, "another effect", faults);
        }
    }
    ToolCatalog::of(entries, form.undeclared_effect)
}
