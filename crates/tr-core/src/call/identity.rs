//! Key and digest of a call.
use super::CallParts;
use crate::{
    Id, InvalidKey, Scope, ToolCall,
    canonical::{self, Digest, Key, KeyParts, KeySource, Rules},
};
use std::sync::LazyLock;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

impl ToolCall {
    /// A hash of the args by which two calls are the same to loop detection.
    #[must_use]
    pub fn args_hash(&self) -> u64 {
        let text = || Digest::of_bytes(self.parts().params.get());
        self.digest().unwrap_or_else(|_| text()).short()
    }
}

impl CallParts {
    /// What a key from `source` is made of.
    #[must_use]
    pub fn key_parts<'a>(&'a self, source: KeySource<'a>) -> KeyParts<'a> {
        let context = &self.context;
        KeyParts {
            scope: match self.idempotency.scope {
                Scope::Global => canonical::Scope::Global,
                Scope::Session => canonical::Scope::Session {
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

pub(super) fn digest(parts: &CallParts) -> Result<Digest, InvalidKey> {
    let rules = parts.manifest.as_deref().map_or(&*RULES, |tool| &tool.rules);
    Digest::of_params(parts.params.get(), rules)
        .map_err(|error| InvalidKey::new(format!("params have no canonical form: {error}")))
}

pub(super) fn id(
    parts: &CallParts,
    digest: impl FnOnce() -> Result<Digest, InvalidKey>,
) -> Result<Option<Id>, InvalidKey> {
    let Some(key) = parts.idempotency.key.as_deref() else { return Ok(None) };
    let key = Key::derive(&parts.key_parts(KeySource::Caller(key)));
    Ok(Some(Id { key, digest: digest()? }))
}
