//! The error of settings.

/// What is wrong with the settings, and what to do about it. Never shows a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);
