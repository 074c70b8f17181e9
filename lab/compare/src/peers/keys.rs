//! Keys: canonical JSON by `serde_json_canonicalizer`, hashed by BLAKE3.
use benches::{call, run::Run};
use serde_json::Value;

/// Reads 1 KiB of params, writes them canonically and hashes them.
///
/// # Panics
/// Never: the params are JSON.
#[must_use]
pub fn jcs_and_blake3() -> Run {
    let params = call::params();
    Run::function(move || {
        let value: Value = serde_json::from_str(&params).expect("JSON");
        blake3::hash(&serde_json_canonicalizer::to_vec(&value).expect("JSON"))
    })
}
