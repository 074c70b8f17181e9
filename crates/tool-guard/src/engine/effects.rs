//! What the server's `tools/list` says about its tools, and how far it is trusted.
use super::options::Trust;
use crate::wire::{
    elements::listed_tools,
    jsonrpc,
    mirrored::{MAX_TOOLS, Mirrored},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};
use tool_reliability::telemetry::TARGET;
use tr_core::{Effect, ToolManifest};

type Tools = HashMap<Box<str>, Arc<ToolManifest>>;

/// The tools that are known, by name.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(super) declared: Declared,
    listed: HashMap<Box<str>, Listed>,
    trust: Trust,
    /// The arguments that headers repeat.
    pub(crate) mirrored: Mirrored,
}

/// What a server says about a tool.
#[derive(Debug)]
struct Listed {
    /// The server says that it changes something for good, so `undeclared_effect` does not apply to it.
    is_harmful: bool,
    /// With the most harmful effect that was ever listed in this connection.
    manifest: Arc<ToolManifest>,
    /// Whether the list that it is in is still current.
    is_current: bool,
}

/// Declarations of the user's catalog and configuration, which override the server's. A clone is another
/// handle of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared(Arc<RwLock<Declarations>>);

/// The user's declarations.
#[derive(Debug, Default)]
struct Declarations {
    tools: Tools,
    /// The effect of tools that neither the user nor the server declares.
    undeclared: Effect,
}

impl Declared {
    /// Replaces all declarations, and the effect of undeclared tools.
    pub(crate) fn replace<'m>(
        &self,
        manifests: impl Iterator<Item = &'m Arc<ToolManifest>>,
        undeclared: Effect,
    ) {
        let tools = manifests.map(|tool| (tool.tool.name().into(), tool.clone())).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) =
            Declarations { tools, undeclared };
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<ToolManifest>> {
        self.read().tools.values().cloned().collect()
    }

    /// Those whose calls this one is asked about.
    pub(crate) fn checked_by(&self, tool: &str) -> Vec<Arc<ToolManifest>> {
        let asks = |it: &&Arc<ToolManifest>| it.check.as_ref().is_some_and(|it| *it.tool == *tool);
        self.read().tools.values().filter(asks).cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Declarations> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
struct Tool<'l> {
    name: Box<str>,
    #[serde(borrow)]
    annotations: Option<&'l RawValue>,
    #[serde(rename = "inputSchema")]
    schema: Option<&'l RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    read_only_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    destructive_hint: Option<bool>,
}

impl Annotations {
    /// MCP's defaults: a tool is harmless only if declared so. A destructive tool is not read-only,
    /// whatever else is declared.
    const fn effect(&self) -> Option<Effect> {
        match (self.destructive_hint, self.read_only_hint, self.idempotent_hint) {
            (None | Some(false), Some(true), _) => Some(Effect::ReadOnly),
            (_, _, Some(true)) => Some(Effect::Idempotent),
            _ => None,
        }
    }

    /// Whether the server itself says that it changes something for good.
    const fn is_harmful(&self) -> bool {
        matches!((self.destructive_hint, self.read_only_hint), (Some(true), _) | (_, Some(false)))
    }
}

impl Trust {
    /// The part of the annotations that is trusted.
    fn of(self, said: Option<Effect>) -> Option<Effect> {
        match (self, said) {
            (Self::All, said) => said,
            (Self::Reads, said) => said.filter(|said| *said == Effect::ReadOnly),
            (Self::Idempotent, Some(Effect::ReadOnly)) => Some(Effect::Idempotent),
            (Self::Idempotent, said) => said,
            (Self::None, _) => None,
        }
    }
}

/// How harmless an effect is.
const fn rank(effect: Option<Effect>) -> u8 {
    match effect {
        Some(Effect::ReadOnly) => 2,
        Some(Effect::Idempotent) => 1,
        _ => 0,
    }
}

impl Effects {
    /// Tools of the server, beside the user's declarations.
    pub(crate) fn beside(declared: Declared, trust: Trust) -> Self {
        Self { declared, trust, ..Self::default() }
    }

    /// Reads a page of the server's list. A tool that was listed as harmful stays so for the whole
    /// connection.
    pub(crate) fn learn(&mut self, result: &RawValue) {
        for tool in listed_tools(result) {
            let Ok(tool) = jsonrpc::object::<Tool<'_>>(tool) else { continue };
            self.mirrored.learn(&tool.name, tool.schema);
            let annotations: Option<Annotations> =
                tool.annotations.and_then(|raw| jsonrpc::object(raw.get()).ok());
            let said = annotations.as_ref().and_then(Annotations::effect);
            self.list(tool.name, said, annotations.as_ref().is_some_and(Annotations::is_harmful));
        }
    }

    /// Adds what is said of a tool: its effect, and whether it changes something for good.
    pub(crate) fn list(&mut self, name: Box<str>, said: Option<Effect>, is_harmful: bool) {
        let said = self.trust.of(said);
        let known = self.listed.get(&name);
        let effect = match known {
            None if self.listed.len() >= MAX_TOOLS => return,
            Some(known) if rank(known.manifest.effect) < rank(said) => {
                tracing::warn!(
                    target: TARGET,
                    event = "annotations_not_believed",
                    tool = &*name,
                    help = "the server listed it as more harmful before: declare it in --catalog",
                );
                known.manifest.effect
            }
            _ => said,
        };
        let is_harmful = is_harmful || known.is_some_and(|known| known.is_harmful);
        let mut manifest = ToolManifest::new(&*name);
        manifest.effect = effect;
        let listed = Listed { is_harmful, manifest: Arc::new(manifest), is_current: true };
        self.listed.insert(name, listed);
    }

    /// The list has changed: until the next list arrives, no tool counts as harmless.
    pub(crate) fn forget(&mut self) {
        for tool in self.listed.values_mut() {
            tool.is_current = false;
        }
    }

    /// The tools that the server lists.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Arc<ToolManifest>> {
        self.listed.values().filter(|tool| tool.is_current).map(|tool| &tool.manifest)
    }

    /// Whether the server itself says that a tool changes something for good.
    pub(crate) fn is_harmful(&self, name: &str) -> bool {
        self.listed.get(name).is_some_and(|tool| tool.is_harmful)
    }

    /// The user's effect for undeclared tools. Whether a tool is undeclared is known only for tools in a
    /// current list.
    pub(crate) fn undeclared(&self, name: &str) -> Option<Effect> {
        let is_silent = |tool: &&Listed| tool.is_current && !tool.is_harmful;
        self.listed.get(name).filter(is_silent).map(|_| self.declared.read().undeclared)
    }

    /// What is known about a tool: the user's declarations, and the server's annotation of its effect if the
    /// user declares none.
    pub(crate) fn of(&self, name: &str) -> Option<Known> {
        let listed = || Some(&self.listed.get(name).filter(|tool| tool.is_current)?.manifest);
        let declared = self.declared.read().tools.get(name).cloned();
        let (manifest, by_server) = match declared {
            Some(declared) if declared.effect.is_some() => (declared, None),
            Some(declared) => (declared, listed().and_then(|tool| tool.effect)),
            None => {
                let listed = listed()?;
                (listed.clone(), listed.effect)
            }
        };
        Some(Known { manifest, by_server })
    }
}

/// What is known about a tool.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) manifest: Arc<ToolManifest>,
    /// Its effect, if the server says so and the user does not.
    pub(crate) by_server: Option<Effect>,
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
                {"name":"nulls","annotations":{"readOnlyHint":true,"idempotentHint":null}},
                {"name":"both","annotations":{"readOnlyHint":true,"destructiveHint":true}},
                {"name":"d","annotations":{"destructiveHint":true,"idempotentHint":true}}]}"#,
        )
        .unwrap();
        let mut effects = Effects::default();
        effects.learn(&raw);
        let effect =
            |name| effects.of(name).and_then(|known| known.manifest.effect.or(known.by_server));
        assert_eq!(effect("r"), Some(Effect::ReadOnly));
        assert_eq!(effect("i"), Some(Effect::Idempotent));
        assert_eq!(effect("nulls"), Some(Effect::ReadOnly));
        assert_eq!(effect("d"), Some(Effect::Idempotent));
        assert!(effects.of("null").is_some() && effects.of("array").is_none());
        for name in ["m", "both", "odd", "fields", "unheard of"] {
            assert_eq!(effect(name), None, "{name}");
        }
        effects.forget();
        assert!(effects.of("r").is_none());
    }

    fn learn(effects: &mut Effects, annotations: &str) {
        let page = format!(r#"{{"tools":[{{"name":"t","annotations":{annotations}}}]}}"#);
        effects.learn(&serde_json::from_str::<Box<RawValue>>(&page).unwrap());
    }

    fn effect(effects: &Effects) -> Option<Effect> {
        effects.of("t").and_then(|known| known.manifest.effect.or(known.by_server))
    }

    #[test]
    fn a_later_list_makes_no_tool_more_harmless() {
        let said = ["{}", r#"{"idempotentHint":true}"#, r#"{"readOnlyHint":true}"#];
        for (first, before) in said.iter().enumerate() {
            for (second, after) in said.iter().enumerate() {
                let mut effects = Effects::default();
                learn(&mut effects, before);
                effects.forget();
                assert_eq!(effect(&effects), None);
                learn(&mut effects, after);
                assert_eq!(usize::from(rank(effect(&effects))), first.min(second));
                // What is said in between is not forgotten either.
                learn(&mut effects, said[2]);
                assert_eq!(usize::from(rank(effect(&effects))), first.min(second));
            }
        }
    }

    #[test]
    fn an_entry_that_names_no_effect_leaves_it_to_the_server() {
        let silent = Arc::new(ToolManifest::new("t"));
        let mut says = ToolManifest::new("t");
        says.effect = Some(Effect::Mutating);
        for (entry, trust, expected) in [
            (silent.clone(), Trust::All, Some(Effect::ReadOnly)),
            (silent.clone(), Trust::Idempotent, Some(Effect::Idempotent)),
            (silent, Trust::None, None),
            (Arc::new(says), Trust::All, Some(Effect::Mutating)),
        ] {
            let declared = Declared::default();
            declared.replace([&entry].into_iter(), Effect::Mutating);
            let mut effects = Effects::beside(declared, trust);
            assert_eq!(effect(&effects), entry.effect, "before the list");
            learn(&mut effects, r#"{"readOnlyHint":true}"#);
            assert_eq!(effect(&effects), expected, "{trust:?}");
            assert!(
                Arc::ptr_eq(&effects.of("t").unwrap().manifest, &entry),
                "its schema is compiled once"
            );
            effects.forget();
            assert_eq!(effect(&effects), entry.effect, "the list has changed");
        }
    }

    #[test]
    fn what_the_user_says_of_all_other_tools_holds_for_those_that_the_list_is_silent_on() {
        let declared = Declared::default();
        declared.replace([].into_iter(), Effect::ReadOnly);
        for (annotations, expected) in [
            ("{}", Some(Effect::ReadOnly)),
            ("null", Some(Effect::ReadOnly)),
            (r#"{"destructiveHint":true}"#, None),
            (r#"{"readOnlyHint":false}"#, None),
        ] {
            let mut effects = Effects::beside(declared.clone(), Trust::All);
            assert_eq!(effects.undeclared("t"), None, "before the list");
            learn(&mut effects, annotations);
            assert_eq!(effects.undeclared("t"), expected, "{annotations}");
            // A later list takes no harm back.
            learn(&mut effects, "{}");
            assert_eq!(effects.undeclared("t"), expected, "{annotations}");
            effects.forget();
            assert_eq!(effects.undeclared("t"), None, "the list has changed");
        }
    }

    #[test]
    fn a_server_is_believed_as_far_as_its_operator_says() {
        let (reads, repeats) = (r#"{"readOnlyHint":true}"#, r#"{"idempotentHint":true}"#);
        for (trust, of_reads, of_repeats) in [
            (Trust::All, Some(Effect::ReadOnly), Some(Effect::Idempotent)),
            (Trust::Reads, Some(Effect::ReadOnly), None),
            (Trust::Idempotent, Some(Effect::Idempotent), Some(Effect::Idempotent)),
            (Trust::None, None, None),
        ] {
            for (said, believed) in [(reads, of_reads), (repeats, of_repeats)] {
                let mut effects = Effects::beside(Declared::default(), trust);
                learn(&mut effects, said);
                assert_eq!(effect(&effects), believed, "{trust:?}, {said}");
            }
        }
    }

    #[test]
    fn a_list_without_end_is_not_kept() {
        let mut effects = Effects::default();
        for page in 0..=MAX_TOOLS / 100 {
            let tools: Vec<_> =
                (0..100).map(|n| format!(r#"{{"name":"t{}"}}"#, 100 * page + n)).collect();
            let page = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
            effects.learn(&serde_json::from_str::<Box<RawValue>>(&page).unwrap());
        }
        assert_eq!(effects.listed().count(), MAX_TOOLS);
    }
}
