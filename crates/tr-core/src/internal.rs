//! What the crates of this project share. It is no part of the public API: it changes in any version.
#![allow(clippy::must_use_candidate, reason = "what is public is so for the other crates here")]
mod called;
mod home;
mod human_duration;
mod members;
mod ready_on_call;

pub use self::{
    called::Called,
    home::{at_home, home},
    human_duration::HumanDuration,
    members::members,
    ready_on_call::{ReadyOnCall, ReadyOnCallFuture},
};
pub use crate::shorten::ceil_char_boundary;
pub use tr_policy::internal::*;

use serde_json::Value;

/// The type of a value, as JSON Schema names it.
pub const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Writes `StoreError`, the error of a crate's stores, over its `StoreErrorKind`, which has at least the four
/// kinds that are named here. With the crate's feature `sqlite`, it is also made from SQLite's errors.
#[doc(hidden)]
#[macro_export]
macro_rules! store_error {
    () => {
        /// A store's failure. [`kind`](Self::kind) says what may have happened and what is safe; its
        /// source is the engine's own error.
        #[derive(Debug, thiserror::Error)]
        #[error("{kind}{}", .cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default())]
        pub struct StoreError {
            kind: StoreErrorKind,
            #[source]
            cause: Option<$crate::BoxError>,
        }

        impl StoreError {
            /// A failure of this kind, because of `cause`.
            pub fn new(kind: StoreErrorKind, cause: impl Into<$crate::BoxError>) -> Self {
                Self { kind, cause: Some(cause.into()) }
            }

            $crate::store_error! { unreachable Unreachable, uncertain Uncertain, unreadable Unreadable, refused Refused }

            /// The kind of failure.
            pub const fn kind(&self) -> StoreErrorKind {
                self.kind
            }

            /// Whether sending the same request again may help.
            pub const fn is_transient(&self) -> bool {
                matches!(self.kind, StoreErrorKind::Unreachable | StoreErrorKind::Uncertain)
            }
        }

        #[cfg(feature = "sqlite")]
        impl From<tr_sqlite::Error> for StoreError {
            fn from(error: tr_sqlite::Error) -> Self {
                use tr_sqlite::Meaning;
                let kind = match error.meaning() {
                    Meaning::Transient => StoreErrorKind::Unreachable,
                    Meaning::Uncertain => StoreErrorKind::Uncertain,
                    Meaning::Unreadable => StoreErrorKind::Unreadable,
                    Meaning::Permanent => StoreErrorKind::Refused,
                };
                Self::new(kind, error)
            }
        }
    };
    ($($name:ident $kind:ident),*) => {$(
        #[doc = concat!("[`StoreErrorKind::", stringify!($kind), "`]")]
        #[must_use]
        pub fn $name(cause: impl Into<$crate::BoxError>) -> Self {
            Self::new(StoreErrorKind::$kind, cause)
        }
    )*};
}
