//! What the server's own `tools/list` says of its tools.
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{collections::HashMap, sync::Arc};
use tr_core::{Effect, ToolManifest};

/// How many tools are remembered; more than any server lists.
const MAX_TOOLS: usize = 10_000;

/// The tools that are known, by name.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// From the user's catalogue: these hold whatever the server says.
    declared: HashMap<Box<str>, Arc<ToolManifest>>,
    listed: HashMap<Box<str>, Arc<ToolManifest>>,
}

#[derive(Deserialize)]
struct Listed<'l> {
    #[serde(borrow, default)]
    tools: Vec<&'l RawValue>,
}

#[derive(Deserialize)]
struct Tool {
    name: Box<str>,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(default, rename = "readOnlyHint")]
    read_only: bool,
    #[serde(default, rename = "idempotentHint")]
    idempotent: bool,
}

impl Annotations {
    /// As MCP's defaults have it: what is not said to be harmless is not.
    const fn effect(&self) -> Option<Effect> {
        match (self.read_only, self.idempotent) {
            (true, _) => Some(Effect::ReadOnly),
            (false, true) => Some(Effect::Idempotent),
            (false, false) => None,
        }
    }
}

impl Effects {
    /// Takes over what the user declared.
    pub(crate) fn declare(&mut self, manifest: Arc<ToolManifest>) {
        self.declared.insert(manifest.tool.name().into(), manifest);
    }

    /// Takes over a page of the server's list.
    pub(crate) fn learn(&mut self, result: &RawValue) {
        let Ok(listed) = serde_json::from_str::<Listed<'_>>(result.get()) else { return };
        for tool in listed.tools {
            let Ok(tool) = serde_json::from_str::<Tool>(tool.get()) else { continue };
            if self.listed.len() >= MAX_TOOLS {
                break;
            }
            let mut manifest = ToolManifest::new(&*tool.name);
            manifest.effect = tool.annotations.effect();
            self.listed.insert(tool.name, Arc::new(manifest));
        }
    }

    /// The list has changed: until it passes by again, nothing is known.
    pub(crate) fn forget(&mut self) {
        self.listed.clear();
    }

    /// What is known of a tool.
    pub(crate) fn of(&self, name: &str) -> Option<&Arc<ToolManifest>> {
        self.declared.get(name).or_else(|| self.listed.get(name))
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
                {"name":"odd","annotations":{"readOnlyHint":"yes"}},7]}"#,
        )
        .unwrap();
        let mut effects = Effects::default();
        effects.learn(&raw);
        let effect = |name| effects.of(name).and_then(|tool| tool.effect);
        assert_eq!(effect("r"), Some(Effect::ReadOnly));
        assert_eq!(effect("i"), Some(Effect::Idempotent));
        assert_eq!((effect("m"), effect("odd"), effect("unheard of")), (None, None, None));
        effects.forget();
        assert!(effects.of("r").is_none());
    }
}
