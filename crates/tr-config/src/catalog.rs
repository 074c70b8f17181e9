//! What is known of an agent's tools, read from a file.
//!
//! # When to use
//!
//! To declare each tool once: its effect, its timeout, how it is retried. An undeclared tool counts
//! as mutating, the most careful default.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "toml")] {
//! use tr_core::{Capability, ToolCall, Params};
//! use tr_config::ToolCatalog;
//!
//! let catalog = ToolCatalog::from_toml(r#"
//!     [defaults]
//!     timeout_ms = 10_000
//!
//!     [tools.flight_search]
//!     effect = "read_only"
//!     capabilities = ["caching", "streaming"]
//!     retry = { attempts = 3, base_ms = 50, cap_ms = 2000 }
//!     classification = { "503" = "permanent" }
//!
//!     [tools.send]
//!     name = "message"
//!     action = "send"
//!     effect = "mutating"
//!     depends_on = ["flight_search"]
//! "#)?;
//! assert!(catalog.supports("flight_search", Capability::Streaming));
//!
//! let call = catalog.manifested(ToolCall::new("flight_search", Params::empty_object()));
//! assert_eq!(call.manifest().unwrap().timeout.unwrap().as_secs(), 10);
//! # }
//! # Ok::<_, tr_config::CatalogError>(())
//! ```
//!
//! # The form
//!
//! - Each table under `tools` is one tool, by a name that `depends_on` and `alternatives` use. It is
//!   the tool's own name too, unless `name` says otherwise; with `namespace` and `action` that is
//!   the tool's identity, which must be met exactly.
//! - `defaults` holds for each listed tool that says nothing else, and for no other.
//!   `classification` and `sensitive` add up.
//! - `input_schema` needs the feature `input-schema`; without it a catalog that has one is refused.
//! - Durations are whole milliseconds, in keys that end with `_ms`.
//! - `undeclared_effect` is the effect of tools that declare none: `mutating` by default.
//!
//! JSON has the same form as TOML, which needs the feature `toml`. The form's schema is
//! `schemas/tool-catalog.schema.json`.
//!
//! # Errors
//!
//! [`CatalogError`] names every mistake with its line.
pub(crate) mod build;
mod endpoint;
mod error;
pub(crate) mod form;
mod from_manifests;
pub(crate) mod read;
mod relations;
pub(crate) mod shape;

pub use self::{
    endpoint::{Endpoint, Method},
    error::{CatalogError, Mistake},
};
use std::{cmp::Ordering, sync::Arc};
use tr_core::{Capability, Effect, ToolCall, ToolId, ToolManifest, setters};
use tr_wire::read::{At, Faults};

#[cfg(feature = "schema")]
pub(crate) use self::form::{Catalog, Tool};

/// A catalog holds no more tools than this.
pub const MAX_TOOLS: usize = 10_000;

/// What is known of an agent's tools. A clone is a reference count.
#[derive(Clone, Debug, Default)]
pub struct ToolCatalog {
    /// In the order of their identities.
    entries: Arc<[Entry]>,
    undeclared_effect: Option<Effect>,
}

#[derive(Debug)]
struct Entry {
    manifest: Arc<ToolManifest>,
    endpoint: Option<Endpoint>,
}

impl Entry {
    fn new(manifest: ToolManifest, at: &At<'_>, faults: &mut Faults) -> Self {
        #[cfg(feature = "input-schema")]
        if let Some(Err(error)) = manifest.schema() {
            let at = At::Member(at, "input_schema");
            build::refuse(&at, "a JSON Schema", &error.to_string(), faults);
        }
        // Without the feature `input-schema` a schema would be accepted but never checked.
        #[cfg(not(feature = "input-schema"))]
        if manifest.input_schema.is_some() {
            const NONE: &str =
                "no schema in a build without the feature `input-schema`, which checks it";
            build::refuse(&At::Member(at, "input_schema"), NONE, "a schema", faults);
        }
        Self { manifest: Arc::new(manifest), endpoint: None }
    }
}

impl ToolCatalog {
    setters! {
        /// Sets the effect of tools that declare none; [`Effect::Mutating`] by default.
        fn with_undeclared_effect(effect: Effect) { undeclared_effect = Some(effect) }
    }

    fn of(mut entries: Vec<Entry>, undeclared_effect: Option<Effect>) -> Self {
        entries.sort_by(|a, b| order(parts(&a.manifest.tool), parts(&b.manifest.tool)));
        Self { entries: entries.into(), undeclared_effect }
    }

    /// What is known of a tool.
    #[must_use]
    pub fn get(&self, tool: &ToolId) -> Option<&Arc<ToolManifest>> {
        self.entry(parts(tool)).map(|entry| &entry.manifest)
    }

    /// What is known of the tool with exactly these parts of its identity.
    #[must_use]
    pub fn find(
        &self,
        namespace: Option<&str>,
        name: &str,
        action: Option<&str>,
    ) -> Option<&Arc<ToolManifest>> {
        self.entry((namespace, name, action)).map(|entry| &entry.manifest)
    }

    fn entry(&self, wanted: Parts<'_>) -> Option<&Entry> {
        let found =
            self.entries.binary_search_by(|entry| order(parts(&entry.manifest.tool), wanted));
        found.ok().map(|at| &self.entries[at])
    }

    /// Whether a tool can do something; `false` for an unknown tool.
    pub fn supports(&self, tool: impl Into<ToolId>, capability: Capability) -> bool {
        self.get(&tool.into()).is_some_and(|tool| tool.can(capability))
    }

    /// The effect of tools that declare none.
    #[must_use]
    pub const fn undeclared_effect(&self) -> Effect {
        match self.undeclared_effect {
            Some(effect) => effect,
            None => Effect::Mutating,
        }
    }

    /// The same; `None` if the catalog does not set it: for merging two catalogs.
    #[must_use]
    pub const fn said_of_undeclared(&self) -> Option<Effect> {
        self.undeclared_effect
    }

    /// Attaches the manifest of its tool to a call. The call's own effect stays unless the manifest
    /// declares one.
    #[must_use]
    pub fn manifested(&self, mut call: ToolCall) -> ToolCall {
        if let Some(manifest) = self.get(&call.parts().tool) {
            call = call.manifested(manifest.clone());
        }
        let undeclared = self.undeclared_effect();
        if !call.parts().effect_declared && call.parts().effect != undeclared {
            call.parts_mut().effect = undeclared;
        }
        call
    }

    /// Checks a call's params against its tool's schema.
    ///
    /// # Errors
    /// If the tool has one and the params do not meet it. The tool did not run.
    #[cfg(feature = "input-schema")]
    pub fn check(&self, call: &ToolCall) -> Result<(), tr_core::manifest::InvalidParams> {
        let manifest = self.get(&call.parts().tool);
        manifest.map_or(Ok(()), |manifest| manifest.check(&call.parts().params))
    }

    /// All manifests, in the order of the tools' identities.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<ToolManifest>> {
        self.entries.iter().map(|entry| &entry.manifest)
    }

    /// Where `tool-guard serve` sends the calls of its tools, in the order of their identities.
    pub fn endpoints(&self) -> impl Iterator<Item = (&ToolId, &Endpoint)> {
        self.entries
            .iter()
            .filter_map(|entry| Some((&entry.manifest.tool, entry.endpoint.as_ref()?)))
    }

    /// The number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

type Parts<'a> = (Option<&'a str>, &'a str, Option<&'a str>);

fn parts(tool: &ToolId) -> Parts<'_> {
    (tool.namespace(), tool.name(), tool.action())
}

fn order(a: Parts<'_>, b: Parts<'_>) -> Ordering {
    // Names differ most often.
    (a.1, a.2, a.0).cmp(&(b.1, b.2, b.0))
}
