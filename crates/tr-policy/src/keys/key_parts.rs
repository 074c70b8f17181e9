//! What a key is made of, and how it is hashed.
use super::{Digest, Key};
use std::{cell::RefCell, fmt};

/// What a key is made of. An absent part differs from an empty one.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// Who may share the answer.
    pub scope: KeyScope<'a>,
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
#[non_exhaustive]
pub enum KeyScope<'a> {
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
#[non_exhaustive]
pub enum KeySource<'a> {
    /// The caller gave this key.
    Caller(&'a str),
    /// A hook gave this key.
    Hook(&'a str),
    /// Derived from the params, because neither the caller nor a hook gave a key.
    Derived(&'a Digest),
    /// The params that say what is wanted, by the tool's manifest.
    Identity(&'a Digest),
}

impl Key {
    /// Hashes `parts`, each with its length in front, so that no two lists of parts look alike.
    #[must_use]
    pub fn derive(parts: &KeyParts<'_>) -> Self {
        Self::hash(b"tr-key-1", |fields| {
            match parts.scope {
                KeyScope::Session { tenant, workspace, session, actor } => {
                    fields.tag(0);
                    for part in [tenant, workspace, session, actor] {
                        fields.maybe(part);
                    }
                }
                KeyScope::Instance(instance) => {
                    fields.tag(1);
                    fields.put(instance);
                }
                KeyScope::Global => fields.tag(2),
            }
            fields.maybe(parts.namespace);
            fields.put(parts.tool);
            fields.maybe(parts.action);
            let (tag, key): (_, &[u8]) = match parts.source {
                KeySource::Caller(key) => (0, key.as_bytes()),
                KeySource::Hook(key) => (1, key.as_bytes()),
                KeySource::Derived(digest) => (2, digest.as_bytes()),
                KeySource::Identity(digest) => (3, digest.as_bytes()),
            };
            fields.tag(tag);
            fields.put(key);
            fields.maybe(parts.step);
        })
    }

    /// The key that holds for these params only: for callers that use one key for several calls.
    #[must_use]
    pub fn joined(&self, digest: &Digest) -> Self {
        self.with(b"tr-join1", digest)
    }

    /// The key of a call that goes on from an earlier answer, by a digest of what it carries on.
    #[must_use]
    pub fn continued(&self, from: &Digest) -> Self {
        self.with(b"tr-cont1", from)
    }

    /// The key that holds for calls through this instance of a service: for callers that name no
    /// session, whose records lie where other services' do.
    #[must_use]
    pub fn of_instance(&self, instance: &str) -> Self {
        self.with(b"tr-inst1", instance)
    }

    fn with(&self, domain: &[u8; 8], other: impl AsRef<[u8]>) -> Self {
        Self::hash(domain, |fields| {
            fields.put(self);
            fields.put(other);
        })
    }

    /// `domain` names what is hashed and the version of its encoding.
    fn hash(domain: &[u8; 8], encode: impl FnOnce(&mut Fields<'_>)) -> Self {
        SCRATCH.with_borrow_mut(|out| {
            out.clear();
            out.extend_from_slice(domain);
            encode(&mut Fields(out));
            let key = Self(blake3::hash(out).into());
            out.clear();
            out.shrink_to(KEPT);
            key
        })
    }
}

/// Space above this size is given back after use.
const KEPT: usize = 64 * 1024;

thread_local! {
    /// So that keys allocate nothing.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An encoding that can be read back in one way only.
struct Fields<'a>(&'a mut Vec<u8>);

impl Fields<'_> {
    fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    /// Length plus one in base 128, lowest digits first; then the bytes.
    fn put(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let mut left = bytes.len() + 1;
        while left >= 128 {
            self.0.push((left % 128) as u8 | 128);
            left /= 128;
        }
        self.0.push(left as u8);
        self.0.extend_from_slice(bytes);
    }

    /// Zero, which is no length, stands for an absent part.
    fn maybe(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.put(text),
            None => self.0.push(0),
        }
    }
}

impl fmt::Debug for KeySource<'_> {
    /// Shows who gave the key, not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller(_) => "Caller",
            Self::Hook(_) => "Hook",
            Self::Derived(_) => "Derived",
            Self::Identity(_) => "Identity(_)",
        })
    }
}
