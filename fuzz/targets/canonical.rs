//! Any bytes: canonical form is reached or refused, never missed; it is its own canonical form.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tr_core::canonical::{Canonicalizer, Digest, Rules, to_string};

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    Rules::builder()
        .drop_at("/a/0".parse().unwrap())
        .drop_at("/b".parse().unwrap())
        .loose_whitespace_at("/c".parse().unwrap())
        .build()
        .unwrap()
});

fuzz_target!(|bytes: &[u8]| {
    let exact = to_string(bytes);
    let mut loose = Vec::new();
    let by_rules = Canonicalizer::new().write(bytes, &RULES, &mut loose);
    assert_eq!(
        exact.as_ref().err(),
        by_rules.as_ref().err(),
        "rules decide what counts, not what is valid"
    );
    match exact {
        Ok(canonical) => {
            assert_eq!(to_string(&canonical).as_ref(), Ok(&canonical));
            assert_eq!(Digest::of_params(bytes, &Rules::exact()), Ok(Digest::of_bytes(&canonical)));
            to_string(&loose).expect("what is left is canonical");
        }
        Err(error) => {
            assert!(error.offset() <= bytes.len());
            assert!(loose.is_empty());
        }
    }
});
