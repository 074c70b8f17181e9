//! What the server's own `tools/list` says of its tools.
use super::message;
use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::{Arc, PoisonError, RwLock};
use tr_core::{Effect, ToolManifest};

/// How many tools are remembered; more than any server lists.
const MAX_TOOLS: usize = 10_000;

type Tools = HashMap<Box<str>, Arc<ToolManifest>>;

/// The tools that are known, by name.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    declared: Declared,
    listed: Tools,
}

/// From the user's catalogue and configuration: these hold whatever the server says. A clone is
/// another handle of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared(Arc<RwLock<Tools>>);

impl Declared {
    /// Takes these in place of all that were declared before.
    pub(crate) fn replace<'m>(&self, manifests: impl Iterator<Item = &'m Arc<ToolManifest>>) {
        let tools = manifests.map(|tool| (tool.tool.name().into(), tool.clone())).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tools;
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<ToolManifest>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn get(&self, name: &str) -> Option<Arc<ToolManifest>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

#[derive(Deserialize)]
struct Listed<'l> {
    #[serde(borrow, default)]
    tools: Vec<&'l RawValue>,
}

#[derive(Deserialize)]
struct Tool<'l> {
    name: Box<str>,
    #[serde(borrow)]
    annotations: Option<&'l RawValue>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "readOnlyHint")]
    read_only: Option<bool>,
    #[serde(rename = "idempotentHint")]
    idempotent: Option<bool>,
}

impl Annotations {
    /// As MCP's defaults have it: what is not said to be harmless is not.
    const fn effect(&self) -> Option<Effect> {
        match (self.read_only, self.idempotent) {
            (Some(true), _) => Some(Effect::ReadOnly),
            (_, Some(true)) => Some(Effect::Idempotent),
            _ => None,
        }
    }
}

impl Effects {
    /// Beside what the user declared.
    pub(crate) fn beside(declared: Declared) -> Self {
        Self { declared, ..Self::default() }
    }

    /// Takes over a page of the server's list.
    pub(crate) fn learn(&mut self, result: &RawValue) {
        let Ok(listed) = message::object::<Listed<'_>>(result.get()) else { return };
        for tool in listed.tools {
            let Ok(tool) = message::object::<Tool<'_>>(tool.get()) else { continue };
            if self.listed.len() >= MAX_TOOLS {
                break;
            }
            let mut manifest = ToolManifest::new(&*tool.name);
            let annotations = tool.annotations.and_then(|raw| message::object(raw.get()).ok());
            manifest.effect = annotations.as_ref().and_then(Annotations::effect);
            self.listed.insert(tool.name, Arc::new(manifest));
        }
    }

    /// The list has changed: until it passes by again, nothing is known.
    pub(crate) fn forget(&mut self) {
        self.listed.clear();
    }

    /// What the server says of its tools.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Arc<ToolManifest>> {
        self.listed.values()
    }

    /// What is known of a tool.
    pub(crate) fn of(&self, name: &str) -> Option<Arc<ToolManifest>> {
        self.declared.get(name).or_else(|| self.listed.get(name).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_to_be_harmless_is() {
        let raw: Box<RawValue> = serde_json::from_str(
            r#"{"tools":[{"name":"r","annotations":{"readOnlyHint":true,"idempotentHint":false}},
                {"name":"i","annotations":{"idempotentHint":true}},{"name":"m"},
                {"name":"odd","annotations":{"readOnlyHint":"yes"}},7,
                {"name":"null","annotations":null},["array",[true,true]],
                {"name":"fields","annotations":[true,true]},
                {"name":"nulls","annotations":{"readOnlyHint":true,"idempotentHint":null}}]}"#,
        )
        .unwrap();
        let mut effects = Effects::default();
        effects.learn(&raw);
        let effect = |name| effects.of(name).and_then(|tool| tool.effect);
        assert_eq!(effect("r"), Some(Effect::ReadOnly));
        assert_eq!(effect("i"), Some(Effect::Idempotent));
        assert_eq!(effect("nulls"), Some(Effect::ReadOnly));
        assert!(effects.of("null").is_some() && effects.of("array").is_none());
        for name in ["m", "odd", "fields", "unheard of"] {
            assert_eq!(effect(name), None, "{name}");
        }
        effects.forget();
        assert!(effects.of("r").is_none());
    }
}
