//! Behavior of canonical JSON, digests, fingerprints and keys.
mod errors;
#[cfg(feature = "interchange")]
mod interchange;
mod keys;
mod model;
mod numbers;
mod pairs;
mod properties;
mod rules;
mod vectors;
