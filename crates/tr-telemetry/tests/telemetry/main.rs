//! The layers and the observer, with listeners in memory.
mod common;
mod docs;
#[cfg(feature = "json")]
mod events;
mod laws;
#[cfg(feature = "json")]
mod lines;
mod metered;
mod metrics;
mod prometheus;
#[cfg(feature = "json")]
mod redaction;
mod requests;
mod spans;
#[cfg(feature = "json")]
mod transitions;
