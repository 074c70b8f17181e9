//! The envelopes: what is read, what is refused, what is written.
mod faults;
mod into_call;
mod normalise;
mod outcomes;
mod round_trip;
mod samples;
#[cfg(feature = "schema")]
mod schemas;
