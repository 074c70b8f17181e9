//! Key and digest of a call.
use super::CallParts;
use crate::{Id, InvalidKey, Scope, ToolCall};

impl ToolCall {
    /// A hash of the args by which two calls are the same to loop detection.
    #[must_use]
    pub fn args_hash(&self) -> u64 {
        let digest = self
            .digest()
            .unwrap_or_else(|_| *blake3::hash(self.parts().params.get().as_bytes()).as_bytes());
        u64::from_le_bytes(*digest.first_chunk().expect("32 bytes"))
    }
}

pub(super) fn digest(parts: &CallParts) -> Result<[u8; 32], InvalidKey> {
    Ok(*blake3::hash(parts.params.get().as_bytes()).as_bytes())
}

pub(super) fn id(
    parts: &CallParts,
    digest: impl FnOnce() -> Result<[u8; 32], InvalidKey>,
) -> Result<Option<Id>, InvalidKey> {
    let Some(key) = parts.idempotency.key.as_deref() else { return Ok(None) };
    let mut hash = blake3::Hasher::new();
    let context = &parts.context;
    let scope = match parts.idempotency.scope {
        Scope::Session => [&context.session, &context.actor, &context.tenant, &context.workspace],
        Scope::Global => [&None; 4],
    };
    for field in
        scope.into_iter().map(Option::as_deref).chain([Some(parts.tool.key().name), Some(key)])
    {
        hash.update(&field.map_or(u64::MAX, |field| field.len() as u64).to_le_bytes());
        hash.update(field.unwrap_or_default().as_bytes());
    }
    Ok(Some(Id { key: *hash.finalize().as_bytes(), digest: digest()? }))
}
