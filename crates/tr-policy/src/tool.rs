//! Which tool a call is for.
use crate::origin;
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

    /// `name` or `name.action`, without the namespace: as plans, catalogs and models name it.
    #[must_use]
    pub fn label(&self) -> &str {
        self.namespace().map_or(&self.0.full, |namespace| &self.0.full[namespace.len() + 1..])
    }

    /// `namespace/name.action`, without the parts that it lacks, as logs, metrics and records show it.
    #[inline]
    #[must_use]
    pub fn full_name(&self) -> &str {
        &self.0.full
    }

    /// A key for tables of tools.
    #[inline]
    #[must_use]
    pub fn key(&self) -> KeyRef<'_> {
        KeyRef::hashed(self.0.hash, &self.0.full)
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
/// Two keys are the same only if both agree. Its `Display` is the whole name.
#[derive(Clone, Copy, Debug)]
pub struct KeyRef<'r> {
    /// A hash that holds within this process.
    pub hash: u64,
    /// What people call it: the name, or the host and port of an origin as the request spells them.
    pub name: &'r str,
    /// The scheme of an [origin](KeyRef::origin); `""` if it is unknown.
    scheme: Option<&'r str>,
    /// The tool that [reaches](KeyRef::target_of) this origin.
    tool: Option<&'r ToolId>,
}

impl<'r> KeyRef<'r> {
    /// Hashes `name`.
    #[must_use]
    pub fn new(name: &'r str) -> Self {
        Self::hashed(hash_of(name), name)
    }

    /// A name whose hash is known.
    #[must_use]
    pub const fn hashed(hash: u64, name: &'r str) -> Self {
        Self { hash, name, scheme: None, tool: None }
    }

    /// The origin of a URL with this scheme and authority: `https://api.example.com`,
    /// `http://localhost:8080`.
    ///
    /// All spellings of an origin are one key: scheme and host are in lower case, the host has no
    /// dot at its end, the scheme's own port (80, 443) is left out, the brackets of an IPv6 address
    /// stay. User and password are no part of it. Where no scheme is known, it is `""`, and the key
    /// is host and port alone. [`KeyRef::new`] of that spelling is the same key.
    #[must_use]
    pub fn origin(scheme: &'r str, authority: &'r str) -> Self {
        let name = origin::without_user(authority);
        let hash = origin::spelled(scheme, name, hash_of);
        Self { hash, name, scheme: Some(scheme), tool: None }
    }

    /// The key of the [origin](KeyRef::origin) that `tool` reaches there: `fetch https://api.example.com`.
    ///
    /// ```
    /// use tr_policy::{KeyRef, ToolId};
    ///
    /// let fetch = ToolId::new("fetch");
    /// let key = KeyRef::target_of(&fetch, "https", "API.example.com:443");
    /// assert_eq!(key.to_string(), "fetch https://api.example.com");
    /// assert!(key.is_target() && key != fetch.key());
    /// ```
    #[must_use]
    pub fn target_of(tool: &'r ToolId, scheme: &'r str, authority: &'r str) -> Self {
        let origin = Self::origin(scheme, authority);
        let hash = HASHER.hash_one((tool.0.hash, origin.hash));
        Self::known_target(hash, tool, scheme, origin.name)
    }

    /// The same, where the hash is known.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn known_target(
        hash: u64,
        tool: &'r ToolId,
        scheme: &'r str,
        host_and_port: &'r str,
    ) -> Self {
        Self { hash, name: host_and_port, scheme: Some(scheme), tool: Some(tool) }
    }

    /// Whether this is what a tool reaches, and not the tool itself.
    #[inline]
    #[must_use]
    pub const fn is_target(&self) -> bool {
        self.tool.is_some()
    }

    /// Whether this is the whole name behind the key.
    #[inline]
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        match self.scheme {
            None => *self.name == *name,
            Some(_) => self.is_spelled(name),
        }
    }

    #[cold]
    fn is_spelled(&self, name: &str) -> bool {
        let own = match self.tool {
            None => Some(name),
            Some(tool) => name.strip_prefix(&*tool.0.full).and_then(|rest| rest.strip_prefix(' ')),
        };
        own.is_some_and(|own| self.spelled(|spelling| spelling == own))
    }

    /// Calls `read` with the name, without the tool's.
    fn spelled<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        match self.scheme {
            None => read(self.name),
            Some(scheme) => origin::spelled(scheme, self.name, read),
        }
    }
}

fn hash_of(name: &str) -> u64 {
    HASHER.hash_one((None::<&str>, name, None::<&str>))
}

impl PartialEq for KeyRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && self.tool == other.tool
            && self.spelled(|own| other.spelled(|name| own == name))
    }
}

impl Eq for KeyRef<'_> {}

impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tool) = self.tool {
            write!(f, "{tool} ")?;
        }
        self.spelled(|name| f.write_str(name))
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
    fn an_origin_is_one_key_however_it_is_spelled() {
        let key = KeyRef::origin("https", "ada:secret@API.example.com.:443");
        assert_eq!(key, KeyRef::origin("HTTPS", "api.example.com"));
        assert_eq!(key, KeyRef::new("https://api.example.com"));
        assert_eq!(KeyRef::new("https://api.example.com"), key);
        assert_eq!(key.to_string(), "https://api.example.com");
        for other in ["http", "", "wss"] {
            assert_ne!(key, KeyRef::origin(other, "api.example.com"), "{other}");
        }
        assert_ne!(key, KeyRef::origin("https", "api.example.com:80"));
        assert_ne!(key, KeyRef::new("api.example.com"));
    }

    #[test]
    fn what_a_tool_reaches_is_one_key_for_each_tool_and_origin() {
        let [fetch, post] = ["fetch", "post"].map(ToolId::new);
        let key = KeyRef::target_of(&fetch, "https", "ada@API.example.com:443");
        assert_eq!(key, KeyRef::target_of(&fetch, "HTTPS", "api.example.com."));
        assert!(key.is_named("fetch https://api.example.com"));
        for other in ["fetch", "https://api.example.com", "fetchhttps://api.example.com"] {
            assert!(!key.is_named(other), "{other}");
        }
        let others = [
            KeyRef::target_of(&post, "https", "api.example.com"),
            KeyRef::target_of(&fetch, "http", "api.example.com"),
            KeyRef::origin("https", "api.example.com"),
            fetch.key(),
        ];
        for other in others {
            assert_ne!(key, other);
            assert_ne!(key.hash, other.hash);
        }
        assert!(!fetch.key().is_target());
    }

    #[test]
    fn a_label_leaves_the_namespace_out_and_a_full_name_has_it() {
        let tool = ToolId::from_parts(Some("agents.tools"), "message", Some("read"));
        assert_eq!(tool.label(), "message.read");
        assert_eq!(tool.full_name(), "agents.tools/message.read");
        let tool = ToolId::new("read");
        assert_eq!((tool.label(), tool.full_name()), ("read", "read"));
    }
}
