//! From a text to a catalogue.
use super::{
    CatalogError, MAX_TOOLS, ToolCatalog,
    build::{self, refuse},
    form::{Catalog, Tool},
    relations::{Declared, relate},
    shape::{At, SourceLocation},
};
use tr_wire::read::{self, Faults, Strictness};

impl ToolCatalog {
    /// Reads a catalogue in JSON.
    ///
    /// # Errors
    /// Names every mistake with its line.
    pub fn from_json(text: &str) -> Result<Self, CatalogError> {
        let mut faults = Faults::of_configuration(text);
        let form = read::text::<Catalog>(text, Strictness::Canonical, &mut faults);
        finish(form, faults, text)
    }

    /// Reads a catalogue in TOML.
    ///
    /// # Errors
    /// Names every mistake with its line.
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str) -> Result<Self, CatalogError> {
        let mut faults = Faults::of_configuration(text);
        let form = read::toml_text::<Catalog>(text, &mut faults);
        finish(form, faults, text)
    }
}

fn finish(
    form: Option<Catalog>,
    mut faults: Faults,
    text: &str,
) -> Result<ToolCatalog, CatalogError> {
    match form.map(|form| build(form, &mut faults)) {
        Some(catalog) if faults.is_empty() => Ok(catalog),
        _ => Err(CatalogError::new(faults, text)),
    }
}

pub(crate) fn build(form: Catalog, faults: &mut Faults) -> ToolCatalog {
    if let Some(defaults) = form.defaults.as_ref().filter(|_| form.tools.is_none()) {
        refuse(
            &defaults.location,
            "defaults of tools that are listed under `tools`",
            "no tools",
            faults,
        );
    }
    let mut tools = form.tools.unwrap_or_default();
    let mut defaults = form.defaults.map(|defaults| defaults.value).unwrap_or_default();
    build::check_defaults(&mut defaults, faults);
    if tools.len() > MAX_TOOLS {
        let location = SourceLocation { pointer: "/tools".into(), offset: Some(0) };
        refuse(&location, "at most 10000 tools", &tools.len().to_string(), faults);
        tools.truncate(MAX_TOOLS);
    }
    let mut declare = |(key, tool): &mut (Box<str>, Option<At<Tool>>)| {
        let mut declared = Declared { key: key.clone(), ..Declared::default() };
        if let Some(At { value: tool, location }) = tool {
            *tool = build::with_defaults(std::mem::take(tool), &defaults, faults);
            declared.id = Some(build::identity(key, tool));
            declared.location = location.clone();
            declared.depends_on = tool.depends_on.take().unwrap_or_default();
            declared.alternatives = tool.alternatives.take().unwrap_or_default();
        }
        declared
    };
    let declared: Vec<_> = tools.iter_mut().map(&mut declare).collect();
    let related = relate(&declared, faults);
    let mut entries = Vec::with_capacity(tools.len());
    for (((_, tool), declared), related) in tools.into_iter().zip(declared).zip(related) {
        let (Some(mut tool), Some(id)) = (tool, declared.id) else { continue };
        let endpoint = build::endpoint(&mut tool.value, faults);
        let schema_spot = tool.value.input_schema.as_ref().map(|schema| schema.location.clone());
        let mut manifest = build::manifest(id, tool.value, faults);
        manifest.depends_on = related.depends_on;
        manifest.alternatives = related.alternatives;
        let mut entry = super::Entry::new(manifest, schema_spot.as_ref(), faults);
        entry.endpoint = endpoint;
        entries.push(entry);
    }
    ToolCatalog::of(entries, form.undeclared_effect)
}
