//! Keys of calls.
use crate::{call, run::Run};
use tr_core::canonical::{Digest, Key, KeyParts, KeyScope, KeySource, Rules};

/// Key and digest of a call with 1 KiB of params.
///
/// # Panics
/// Never: the params are JSON.
#[must_use]
pub fn key() -> Run {
    let (params, rules) = (call::params(), Rules::default());
    Run::function(move || {
        let digest = Digest::of_params(&params, &rules).expect("JSON");
        Key::derive(&KeyParts {
            scope: KeyScope::Instance("bench"),
            namespace: None,
            tool: "flight_search",
            action: None,
            source: KeySource::Derived(&digest),
            step: None,
        })
    })
}
