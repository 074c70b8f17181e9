//! Idempotency keys: what names one call in a store of records.
use super::digest::hash;

/// Names one call: two calls with the same key are one call.
///
/// A hash of [`KeyParts`](super::KeyParts), so that a store sees neither the caller's key nor its session.
/// [`Display`](std::fmt::Display) and [`FromStr`](std::str::FromStr) use 64 hexadecimal digits, for stores;
/// [`Debug`](std::fmt::Debug) shows a fingerprint, for logs.
///
/// ```
/// use tr_policy::keys::{Key, KeyParts, KeyScope, KeySource};
///
/// let order = KeyParts {
///     scope: KeyScope::Session {
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
pub struct Key(pub(super) [u8; 32]);

hash!(Key);
