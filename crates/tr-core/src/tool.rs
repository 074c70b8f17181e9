//! Which tool a call is for.
use std::{
    fmt,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    sync::{Arc, LazyLock},
};

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A tool's identity: its namespace, its name, and its action where it has several.
///
/// `message.read` and `message.send` are two tools: key, digest, manifest, effect, breaker, loop
/// detection and labels all mean this by "tool". A clone is a reference count.
#[derive(Clone)]
pub struct ToolId(Arc<Identity>);

struct Identity {
    namespace: Option<Box<str>>,
    name: Box<str>,
    action: Option<Box<str>>,
    /// The parts joined for people: `namespace/name.action`.
    full: Box<str>,
    /// Where in `full` the part after the namespace begins.
    label: usize,
    hash: u64,
}

impl ToolId {
    /// A tool without namespace and action.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::from_parts(None, name, None)
    }

    /// A tool with all parts of its identity.
    #[must_use]
    pub fn from_parts(namespace: Option<&str>, name: &str, action: Option<&str>) -> Self {
        let mut full = String::new();
        if let Some(namespace) = namespace {
            full.push_str(namespace);
            full.push('/');
        }
        let label = full.len();
        full.push_str(name);
        if let Some(action) = action {
            full.push('.');
            full.push_str(action);
        }
        // The parts are hashed, not `full`: joining them is ambiguous.
        let hash = HASHER.hash_one((namespace, name, action));
        Self(Arc::new(Identity {
            namespace: namespace.map(Into::into),
            name: name.into(),
            action: action.map(Into::into),
            full: full.into(),
            label,
            hash,
        }))
    }

    /// The namespace, such as `agents.tools.messaging`.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.namespace.as_deref()
    }

    /// The tool's own name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The action within the tool.
    #[must_use]
    pub fn action(&self) -> Option<&str> {
        self.0.action.as_deref()
    }

    /// `name` or `name.action`, as logs and metric labels show it.
    #[inline]
    #[must_use]
    pub fn label(&self) -> &str {
        &self.0.full[self.0.label..]
    }

    /// A key for tables of tools.
    #[inline]
    #[must_use]
    pub fn key(&self) -> KeyRef<'_> {
        KeyRef { hash: self.0.hash, name: &self.0.full }
    }
}

impl PartialEq for ToolId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.namespace == other.0.namespace
                && self.0.name == other.0.name
                && self.0.action == other.0.action)
    }
}

impl Eq for ToolId {}

impl Hash for ToolId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolId").field(&self.0.full).finish()
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.full)
    }
}

impl From<&str> for ToolId {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// A borrowed key of a table: a hash, computed once where it can be, and the name behind it.
///
/// Two keys are the same only if both agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRef<'r> {
    /// A hash that holds within this process.
    pub hash: u64,
    /// The name, as people read it.
    pub name: &'r str,
}

impl<'r> KeyRef<'r> {
    /// Hashes `name`.
    #[must_use]
    pub fn new(name: &'r str) -> Self {
        Self { hash: HASHER.hash_one((None::<&str>, name, None::<&str>)), name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_that_join_alike_stay_apart() {
        let joined = ToolId::new("message.send");
        let parts = ToolId::from_parts(None, "message", Some("send"));
        assert_eq!(joined.label(), parts.label());
        assert_ne!(joined, parts);
        assert_ne!(joined.key(), parts.key());
    }

    #[test]
    fn a_plain_name_has_the_key_of_its_string() {
        assert_eq!(ToolId::new("search").key(), KeyRef::new("search"));
    }

    #[test]
    fn label_leaves_the_namespace_out() {
        let tool = ToolId::from_parts(Some("agents.tools"), "message", Some("read"));
        assert_eq!(
            (tool.label(), tool.to_string().as_str()),
            ("message.read", "agents.tools/message.read")
        );
    }
}
