//! Idempotency keys: what names one call in a store of records.
use super::{Digest, FingerprintKey, HexError, digest::short, hex};
use std::{fmt, str::FromStr};

/// Names one call: two calls with the same key are one call.
///
/// A hash of [`KeyParts`], so that a store sees neither the caller's key nor its session.
/// [`Display`](fmt::Display) and [`FromStr`] use 64 hexadecimal digits, for stores;
/// [`Debug`](fmt::Debug) shows a fingerprint, for logs.
///
/// ```
/// use tr_core::canonical::{Key, KeyParts, KeySource, Scope};
///
/// let order = KeyParts {
///     scope: Scope::Session {
///         tenant: None,
///         workspace: None,
///         session: Some("s1"),
///         actor: Some("ada"),
///     },
///     namespace: Some("shop"),
///     tool: "order",
///     action: None,
///     source: KeySource::Caller("order-42"),
///     step: None,
/// };
/// let key = Key::derive(&order);
/// assert_ne!(key, Key::derive(&KeyParts { namespace: None, ..order }));
/// assert_eq!(key.to_string().parse(), Ok(key));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

/// What a key is made of. An absent part differs from an empty one.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// Who may share the answer.
    pub scope: Scope<'a>,
    /// The tool's namespace.
    pub namespace: Option<&'a str>,
    /// The tool's name.
    pub tool: &'a str,
    /// The tool's action, for a tool that has several.
    pub action: Option<&'a str>,
    /// Where the key comes from.
    pub source: KeySource<'a>,
    /// The step, where a derived key holds for one step only.
    pub step: Option<&'a str>,
}

/// Who may share an answer.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Calls of one session and actor, the default.
    Session {
        /// The tenant.
        tenant: Option<&'a str>,
        /// The workspace.
        workspace: Option<&'a str>,
        /// The session.
        session: Option<&'a str>,
        /// The user or account.
        actor: Option<&'a str>,
    },
    /// Calls through one instance of a service, for callers that name no session.
    Instance(&'a str),
    /// Everybody: only for tools that do no more than read.
    Global,
}

/// Where a key comes from. The same text from two sources makes two keys.
#[derive(Clone, Copy)]
pub enum KeySource<'a> {
    /// The caller gave this key.
    Caller(&'a str),
    /// A hook gave this key.
    Hook(&'a str),
    /// Nobody gave one: the params speak for themselves.
    Derived(&'a Digest),
}

impl Key {
    /// Hashes `parts`, each with its length in front, so that no two lists of parts look alike.
    #[must_use]
    pub fn derive(parts: &KeyParts<'_>) -> Self {
        let mut hash = Fields::new("tool-reliability key v1");
        match parts.scope {
            Scope::Session { tenant, workspace, session, actor } => {
                hash.tag(0);
                [tenant, workspace, session, actor].into_iter().for_each(|part| hash.maybe(part));
            }
            Scope::Instance(instance) => {
                hash.tag(1);
                hash.field(instance.as_bytes());
            }
            Scope::Global => hash.tag(2),
        }
        hash.maybe(parts.namespace);
        hash.field(parts.tool.as_bytes());
        hash.maybe(parts.action);
        let (kind, source) = match parts.source {
            KeySource::Caller(key) => (0, key.as_bytes()),
            KeySource::Hook(key) => (1, key.as_bytes()),
            KeySource::Derived(digest) => (2, digest.as_bytes().as_slice()),
        };
        hash.tag(kind);
        hash.field(source);
        hash.maybe(parts.step);
        hash.finish()
    }

    /// The key that holds for these params only: for callers that use one key for several calls.
    #[must_use]
    pub fn joined(&self, digest: &Digest) -> Self {
        let mut hash = Fields::new("tool-reliability key with digest v1");
        hash.field(&self.0);
        hash.field(digest.as_bytes());
        hash.finish()
    }

    /// A key that was derived earlier.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// All 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 8 bytes as a little-endian number, for tables.
    #[must_use]
    pub fn short(&self) -> u64 {
        short(&self.0)
    }
}

/// An encoding that can be read back in one way only: tags and lengths before everything.
struct Fields(blake3::Hasher);

impl Fields {
    fn new(domain: &str) -> Self {
        let mut fields = Self(blake3::Hasher::new());
        fields.field(domain.as_bytes());
        fields
    }

    fn tag(&mut self, tag: u8) {
        self.0.update(&[tag]);
    }

    fn field(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn maybe(&mut self, text: Option<&str>) {
        self.tag(u8::from(text.is_some()));
        text.into_iter().for_each(|text| self.field(text.as_bytes()));
    }

    fn finish(self) -> Key {
        Key(self.0.finalize().into())
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Key {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        hex::read(text).map(Self)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", FingerprintKey::of_process().fingerprint(self))
    }
}

impl fmt::Debug for KeySource<'_> {
    /// Shows who gave the key, not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller(_) => "Caller",
            Self::Hook(_) => "Hook",
            Self::Derived(_) => "Derived",
        })
    }
}
