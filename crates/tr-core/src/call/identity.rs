//! Key and digest of a call.
use super::{CallParts, ToolCall};
use crate::{
    DedupeKey, DedupeScope, Derive, InvalidKey, ToolManifest,
    canonical::{self, Digest, Key, KeyParts, KeySource, Pointer, Rules},
};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

impl ToolCall {
    /// A digest of the canonical params, computed at most once.
    ///
    /// # Errors
    /// If the params have no canonical form: duplicate names, a lone surrogate, a number that
    /// no double can hold.
    pub fn digest(&self) -> Result<Digest, InvalidKey> {
        self.body.digest.get_or_init(|| digest_of(self.parts())).clone()
    }

    /// By what a repeat of this call is recognized, computed at most once; `None` without a key.
    ///
    /// # Errors
    /// If there is a key, and the params have no canonical form.
    #[inline]
    pub fn id(&self) -> Result<Option<DedupeKey>, InvalidKey> {
        match self.parts().idempotency.id {
            Some(id) => Ok(Some(id)),
            None => self.computed_id(),
        }
    }

    fn computed_id(&self) -> Result<Option<DedupeKey>, InvalidKey> {
        let id = || {
            let Some(key) = self.parts().idempotency.key.as_deref() else {
                let Some(identity) = self.identity() else { return Ok(None) };
                let key = Key::derive(&self.parts().key_parts(KeySource::Identity(&identity)));
                return Ok(Some(DedupeKey { key, digest: self.digest()? }));
            };
            let from_hook = self.parts().idempotency.from_hook;
            let source = if from_hook { KeySource::Hook(key) } else { KeySource::Caller(key) };
            let key = Key::derive(&self.parts().key_parts(source));
            let continues = self.parts().idempotency.continues;
            let key = continues.map_or(key, |from| key.continued(&from));
            Ok(Some(DedupeKey { key, digest: self.digest()? }))
        };
        self.body.id.get_or_init(id).clone()
    }

    /// The digest of the params that say what is wanted, as the [manifest](crate::ToolManifest::identity) names them;
    /// `None` if it names none, or if one of them is missing or `null`.
    #[must_use]
    pub fn identity(&self) -> Option<Digest> {
        self.manifest()?.identity_of(self.parts().params.get())
    }

    /// Whether it is recognized by the params that say what is wanted.
    #[must_use]
    pub fn is_identified(&self) -> bool {
        self.parts().idempotency.key.is_none() && self.identity().is_some()
    }

    /// A hash of the args by which two calls are the same to loop detection, computed at most once.
    #[must_use]
    pub fn args_hash(&self) -> u64 {
        *self.body.args_hash.get_or_init(|| self.hash_of_args())
    }

    fn hash_of_args(&self) -> u64 {
        let (parts, params) = (self.parts(), self.parts().params.get());
        let key = self.manifest().and_then(|tool| tool.loops.loop_key.as_deref());
        let key = key.and_then(|names| loop_key(params, names));
        // A count of retries does not make a loop another call.
        let digest = key.or_else(|| match parts.own_params {
            true => Digest::of_params(params, rules(parts)).ok(),
            false => self.digest().ok(),
        });
        digest.unwrap_or_else(|| Digest::of_bytes(params)).short()
    }

    /// The derived key, by which a repeat of a call without a key is recognized; `None` from a
    /// step that the call does not name.
    ///
    /// # Errors
    /// If the params have no canonical form.
    pub fn derived_id(&self, from: Derive) -> Result<Option<DedupeKey>, InvalidKey> {
        let parts = self.parts();
        let step = parts.step.as_deref().filter(|_| from == Derive::Step);
        if from == Derive::Step && step.is_none() {
            return Ok(None);
        }
        let digest = self.digest()?;
        let key = Key::derive(&KeyParts { step, ..parts.key_parts(KeySource::Derived(&digest)) });
        // A step is named within its turn.
        let turn = step.and(parts.turn.as_deref()).map(Digest::of_bytes);
        Ok(Some(DedupeKey { key: turn.map_or(key, |turn| key.joined(&turn)), digest }))
    }
}

impl ToolManifest {
    /// The digest of the params that say what is wanted, of these params.
    #[must_use]
    pub fn identity_of(&self, params: &str) -> Option<Digest> {
        if self.identity.is_empty() {
            return None;
        }
        let params: &RawValue = serde_json::from_str(params).ok()?;
        let value = |it: &Pointer| Some(it.find(params)?.get()).filter(|text| *text != "null");
        let values: Option<Vec<_>> = self.identity.iter().map(value).collect();
        Digest::of_params(format!("[{}]", values?.join(",")), &Rules::exact()).ok()
    }
}

impl CallParts {
    /// What a key from `source` is made of.
    #[must_use]
    pub fn key_parts<'a>(&'a self, source: KeySource<'a>) -> KeyParts<'a> {
        let context = &self.context;
        KeyParts {
            scope: match self.idempotency.scope {
                DedupeScope::Global => canonical::KeyScope::Global,
                DedupeScope::Session => canonical::KeyScope::Session {
                    tenant: context.tenant.as_deref(),
                    workspace: context.workspace.as_deref(),
                    session: context.session.as_deref(),
                    actor: context.actor.as_deref(),
                },
            },
            namespace: self.tool.namespace(),
            tool: self.tool.name(),
            action: self.tool.action(),
            source,
            step: None,
        }
    }
}

/// A digest of these params alone; `None` if the call has none of them.
fn loop_key(params: &str, names: &[Box<str>]) -> Option<Digest> {
    let all: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(params).ok()?;
    let named = names.iter().filter_map(|name| Some((&**name, all.get(&**name)?)));
    let named: BTreeMap<&str, &&RawValue> = named.collect();
    let text = serde_json::to_string(&named).ok()?;
    if named.is_empty() { None } else { Digest::of_params(&text, &Rules::exact()).ok() }
}

fn rules(parts: &CallParts) -> &Rules {
    parts.manifest.as_deref().map_or(&*RULES, |tool| &tool.rules)
}

fn digest_of(parts: &CallParts) -> Result<Digest, InvalidKey> {
    let (params, rules) = (parts.params.get(), rules(parts));
    let digest = match parts.own_params {
        true => Digest::of_params(params, &rules.for_own_params()),
        false => Digest::of_params(params, rules),
    };
    digest.map_err(|error| InvalidKey::new(format!("params have no canonical form: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FencingToken, Params};

    fn call(session: &str, turn: Option<&str>, step: Option<&str>) -> ToolCall {
        let mut parts = CallParts::new("pay", Params::empty_object());
        parts.context.session = Some(session.into());
        (parts.turn, parts.step) = (turn.map(Into::into), step.map(Into::into));
        parts.into()
    }

    #[test]
    fn derived_keys_hold_for_their_session_or_their_step_of_their_turn() {
        let key = |call: ToolCall, from| call.derived_id(from).unwrap().map(|id| id.key);
        let session = key(call("s", Some("t"), Some("1")), Derive::Session);
        assert_eq!(session, key(call("s", None, None), Derive::Session));
        assert_ne!(session, key(call("z", None, None), Derive::Session));

        assert_eq!(key(call("s", Some("t"), None), Derive::Step), None);
        let step = key(call("s", Some("t"), Some("1")), Derive::Step);
        assert_eq!(step, key(call("s", Some("t"), Some("1")), Derive::Step));
        for other in [Some("u"), None] {
            assert_ne!(step, key(call("s", other, Some("1")), Derive::Step));
        }
        assert_ne!(step, key(call("s", Some("t"), Some("2")), Derive::Step));
        assert_ne!(step, session);
    }

    #[test]
    fn a_call_that_goes_on_from_elsewhere_is_another_call() {
        let from = |text: &str| Digest::of_bytes(text);
        let key = |continues: Option<Digest>| {
            let mut parts = CallParts::new("pay", Params::empty_object());
            parts.idempotency.key = Some("k".into());
            parts.idempotency.continues = continues;
            ToolCall::from(parts).id().unwrap().unwrap().key
        };
        assert_eq!(key(Some(from("a"))), key(Some(from("a"))));
        assert_ne!(key(Some(from("a"))), key(Some(from("b"))));
        assert_ne!(key(Some(from("a"))), key(None));
        // Nor is it a key derived from the params.
        assert_ne!(key(Some(from("a"))), key(None).joined(&from("a")));
    }

    #[test]
    fn own_params_differ_also_in_volatile_names_unless_the_catalog_drops_them() {
        let call = |params: &str, own_params, rules: Option<Rules>| {
            let mut parts = CallParts::new("pay", Params::from_text(params).unwrap());
            parts.own_params = own_params;
            let call = ToolCall::from(parts);
            let Some(rules) = rules else { return call };
            let mut tool = crate::ToolManifest::new("pay");
            tool.rules = rules;
            call.manifested(std::sync::Arc::new(tool))
        };
        let [one, two] = [r#"{"to":"a","retryCount":1}"#, r#"{"to":"a","retryCount":2}"#];
        let dropped = || Rules::builder().drop_volatile().build().unwrap();
        let named = || Rules::builder().drop_at("/retryCount".parse().unwrap()).build().unwrap();
        for (own, rules, is_equal) in [
            (false, None, true),
            (true, None, false),
            (true, Some(Rules::default()), false),
            (true, Some(dropped()), true),
            (true, Some(named()), true),
        ] {
            let [one, two] = [one, two].map(|params| call(params, own, rules.clone()));
            assert_eq!(one.digest() == two.digest(), is_equal, "{own} {rules:?}");
            assert_eq!(one.args_hash(), two.args_hash(), "to loop detection they are the same");
        }
    }

    #[test]
    fn a_tool_s_loop_key_is_all_that_tells_its_calls_apart() {
        let mut tool = crate::ToolManifest::new("job");
        tool.loops.loop_key = Some(vec!["id".into(), "part".into()]);
        let tool = std::sync::Arc::new(tool);
        let hash = |params: &str| {
            let call = ToolCall::new("job", Params::from_text(params).unwrap());
            call.manifested(tool.clone()).args_hash()
        };
        assert_eq!(hash(r#"{"id": 7, "cursor": 1}"#), hash(r#"{"cursor": 2, "id": 7}"#));
        assert_ne!(hash(r#"{"id": 7}"#), hash(r#"{"id": 8}"#));
        assert_ne!(hash(r#"{"id": 7}"#), hash(r#"{"id": 7, "part": 1}"#));
        // Without any of them the whole call counts.
        assert_ne!(hash(r#"{"cursor": 1}"#), hash(r#"{"cursor": 2}"#));
    }

    #[test]
    fn a_copy_whose_params_were_changed_and_its_copies_are_another_call() {
        let with = |params: &str| Params::from_text(params).unwrap();
        let first = ToolCall::new("pay", with(r#"{"cents":1}"#)).idempotency_key("k");
        let told = |call: &ToolCall| (call.id().unwrap(), call.digest().unwrap(), call.args_hash());
        let of_first = told(&first);
        let fence = FencingToken { key: Key::from_bytes([1; 32]), epoch: 1 };
        let mut changed = first.clone();
        changed.set_fencing_token(fence);
        assert_eq!(told(&changed), of_first);
        changed.parts_mut().params = with(r#"{"cents":2}"#);
        let mut copy = changed.clone();
        copy.set_fencing_token(fence);
        let other = ToolCall::new("pay", with(r#"{"cents":2}"#)).idempotency_key("k");
        assert_eq!(told(&copy), told(&other));
    }
}
