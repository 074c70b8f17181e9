//! Params as they are compared with those of a call of unknown outcome: without what a model writes again for each
//! request.
use crate::wire::elements::string_end;
use icu_normalizer::ComposingNormalizerBorrowed;
use serde_json::Value;
use tr_core::{
    ToolCall,
    canonical::{Digest, Rules},
};

/// Members that name a request or say when it was made, in lower case and without `_` and `-`.
const PER_REQUEST: [&str; 24] = [
    "clientrequestid",
    "clientrequesttoken",
    "clienttimestamp",
    "clienttoken",
    "correlationid",
    "deduplicationid",
    "dedupkey",
    "dedupekey",
    "idempotencyid",
    "idempotencykey",
    "idempotencytoken",
    "idempotentkey",
    "messagededuplicationid",
    "nonce",
    "requestedat",
    "requestid",
    "requestkey",
    "requesttime",
    "requesttimestamp",
    "requesttoken",
    "requestuuid",
    "sentat",
    "timestamp",
    "traceid",
];

/// The digest of a call's params as they are compared with those of a call of unknown outcome: mostly the `exact` one.
/// Nothing is joined or replayed by it.
pub(crate) fn likeness(call: &ToolCall, exact: Digest) -> Digest {
    let params = call.parts().params.get();
    if !may_leave_out(params) {
        return exact;
    }
    let rules = call.manifest().map_or_else(Rules::default, |tool| tool.rules.clone());
    let value = call.digest().ok().filter(|_| !rules.keeps_volatile());
    let Some(Ok(mut value)) = value.map(|_| serde_json::from_str(params)) else {
        return exact;
    };
    leave_out(&mut value);
    let alike = Digest::of_params(value.to_string(), &rules.for_own_params());
    alike.unwrap_or(exact)
}

/// Whether params may have something that does not count, in one pass: most have nothing.
fn may_leave_out(params: &str) -> bool {
    let mut rest = params.as_bytes();
    while let Some(at) = memchr::memchr(b'"', rest) {
        let Some(end) = string_end(&rest[at + 1..]) else { return true };
        let (before, text) = (&rest[..at], &rest[at + 1..at + end]);
        rest = &rest[at + 1 + end..];
        let is_name = rest.trim_ascii_start().starts_with(b":");
        let is_per_request =
            |name: &[u8]| name.contains(&b'\\') || str::from_utf8(name).is_ok_and(is_per_request);
        // Outside of strings, only `null` has an n.
        if before.contains(&b'n') || is_name && is_per_request(text) {
            return true;
        }
    }
    rest.contains(&b'n') || !params.is_ascii()
}

/// Leaves out members that belong to one request, and those that are `null`; strings are compared in NFC.
fn leave_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| !value.is_null() && !is_per_request(name));
            members.values_mut().for_each(leave_out);
        }
        Value::Array(elements) => elements.iter_mut().for_each(leave_out),
        Value::String(text) if !text.is_ascii() => {
            *text = ComposingNormalizerBorrowed::new_nfc().normalize(text).into_owned();
        }
        _ => {}
    }
}

fn is_per_request(name: &str) -> bool {
    // As long as one of them, with `_` and `-` between its letters.
    if !(5..=40).contains(&name.len()) {
        return false;
    }
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    let name: String = letters.flat_map(char::to_lowercase).collect();
    PER_REQUEST.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::identity::digest;
    use tr_core::Params;

    fn alike(a: &str, b: &str) -> bool {
        let of = |text: &str| {
            let call = ToolCall::new("pay", Params::from_text(text).unwrap());
            likeness(&call, digest(&call))
        };
        of(a) == of(b)
    }

    #[test]
    fn what_belongs_to_one_request_does_not_count() {
        for again in [
            r#"{"cents":5,"idempotency_key":"b"}"#,
            r#"{"cents":5,"Idempotency-Key":7,"memo":null}"#,
            r#"{"cents":5.0,"requestId":"r","timestamp":"2026-11-27T10:00:00Z"}"#,
        ] {
            assert!(alike(r#"{"cents":5,"idempotency_key":"a"}"#, again), "{again}");
        }
        assert!(alike(r#"{"to":"José"}"#, "{\"to\":\"Jose\u{301}\"}"));
        assert!(alike(r#"{"a":[{"nonce":1,"b":2}]}"#, r#"{"a":[{"b":2}]}"#));
        for other in [
            r#"{"cents":6}"#,
            r#"{"cents":5,"memo":"x"}"#,
            r#"{"cents":5,"order_id":"a"}"#,
            r#"{"cents":"5"}"#,
            r#"{"cents":5,"cents":5}"#,
        ] {
            assert!(!alike(r#"{"cents":5}"#, other), "{other}");
        }
        assert!(!alike(r#"{"to":"Bob"}"#, r#"{"to":"Bob "}"#));
    }
}
