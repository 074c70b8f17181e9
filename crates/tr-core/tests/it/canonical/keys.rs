//! Digests, fingerprints and keys.
use std::collections::HashSet;
use tr_core::canonical::{Digest, FingerprintKey, Key, KeyParts, KeyScope, KeySource, Rules};

fn session<'a>(session: Option<&'a str>, actor: Option<&'a str>) -> KeyScope<'a> {
    KeyScope::Session { tenant: None, workspace: None, session, actor }
}

fn parts<'a>(scope: KeyScope<'a>, source: KeySource<'a>) -> KeyParts<'a> {
    KeyParts { scope, namespace: Some("shop"), tool: "order", action: None, source, step: None }
}

#[test]
fn a_digest_is_blake3_of_the_canonical_text() {
    let digest = Digest::of_params(r#"{ "retryCount": 1, "a": 1.0 }"#, &Rules::default()).unwrap();
    assert_eq!(digest, Digest::of_bytes(r#"{"a":1}"#));
    assert_eq!(*digest.as_bytes(), *blake3::hash(br#"{"a":1}"#).as_bytes());
    assert_eq!(digest.to_string(), blake3::hash(br#"{"a":1}"#).to_hex().as_str());
    assert_eq!(digest.short().to_le_bytes(), digest.as_bytes()[..8]);
    assert_eq!(digest.to_string().parse(), Ok(digest));
    assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    assert!(Digest::of_params("{", &Rules::default()).is_err());
    // A fault leaves nothing behind in the thread's scratch space.
    assert_eq!(Digest::of_params(r#"{"a":1}"#, &Rules::exact()), Ok(digest));
}

#[test]
fn large_params_have_a_digest_too() {
    let text = format!(r#"{{"b":"{0}","a":["{0}"]}}"#, "x".repeat(200_000));
    let sorted = format!(r#"{{"a":["{0}"],"b":"{0}"}}"#, "x".repeat(200_000));
    assert_eq!(Digest::of_params(text, &Rules::exact()), Ok(Digest::of_bytes(sorted)));
}

#[test]
fn hexadecimal_is_read_strictly() {
    let text = "0123456789abcdef".repeat(4);
    assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
    for wrong in
        [&text[1..], &format!("{text}0"), &text.to_uppercase(), &text.replace('0', "+"), ""]
    {
        assert!(wrong.parse::<Key>().is_err(), "{wrong}");
        assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
    }
}

/// Whoever changes the encoding gives it a new version, or finds no record that exists.
#[test]
fn keys_of_version_1_stay_what_they_are() {
    let digest = Digest::of_bytes("{}");
    let derived = parts(session(Some("s"), Some("ada")), KeySource::Derived(&digest));
    let mut encoded = b"tr-key-1\0\0\0\x02s\x04ada\x05shop\x06order\0\x02\x21".to_vec();
    encoded.extend_from_slice(digest.as_bytes());
    encoded.push(0);
    assert_eq!(Key::derive(&derived).as_bytes(), blake3::hash(&encoded).as_bytes());

    let long = "k".repeat(300);
    let key = Key::derive(&parts(KeyScope::Global, KeySource::Caller(&long)));
    let mut encoded = b"tr-key-1\x02\x05shop\x06order\0\0\xad\x02".to_vec();
    encoded.extend_from_slice(long.as_bytes());
    encoded.push(0);
    assert_eq!(key.as_bytes(), blake3::hash(&encoded).as_bytes());
}

#[test]
fn every_part_counts() {
    let digest = Digest::of_bytes("k");
    let base = parts(session(Some("a"), Some("b")), KeySource::Caller("k"));
    let scope = |tenant, workspace, session, actor| {
        let scope = KeyScope::Session { tenant, workspace, session, actor };
        KeyParts { scope, ..base }
    };
    let text = str::from_utf8(&[b'k'; 32]).unwrap().to_owned();
    let same_bytes = Digest::from_bytes([b'k'; 32]);
    let all = [
        base,
        scope(None, None, Some("b"), Some("a")),
        scope(None, None, Some("ab"), None),
        scope(None, None, Some("ab"), Some("")),
        scope(None, None, None, Some("ab")),
        scope(Some("a"), Some("b"), None, None),
        scope(Some(""), None, Some("a"), Some("b")),
        scope(None, Some(""), Some("a"), Some("b")),
        scope(None, None, None, None),
        scope(Some(""), Some(""), Some(""), Some("")),
        KeyParts { scope: KeyScope::Global, ..base },
        KeyParts { scope: KeyScope::Instance(""), ..base },
        KeyParts { scope: KeyScope::Instance("a"), ..base },
        KeyParts { namespace: None, ..base },
        KeyParts { namespace: Some(""), ..base },
        KeyParts { namespace: Some("shoporder"), tool: "", ..base },
        KeyParts { tool: "orders", ..base },
        KeyParts { action: Some(""), ..base },
        KeyParts { action: Some("send"), ..base },
        KeyParts { source: KeySource::Hook("k"), ..base },
        KeyParts { source: KeySource::Caller(""), ..base },
        KeyParts { source: KeySource::Derived(&digest), ..base },
        KeyParts { source: KeySource::Derived(&same_bytes), ..base },
        KeyParts { source: KeySource::Caller(&text), ..base },
        KeyParts { step: Some(""), ..base },
        KeyParts { step: Some("1"), ..base },
    ];
    let keys: HashSet<Key> = all.iter().map(Key::derive).collect();
    assert_eq!(keys.len(), all.len());
    assert_eq!(keys, all.iter().map(Key::derive).collect());
}

#[test]
fn the_joint_of_session_and_actor_is_no_part_of_either() {
    let key =
        |of, actor| Key::derive(&parts(session(Some(of), Some(actor)), KeySource::Caller("k")));
    assert_ne!(key("a::b", "c"), key("a", "b::c"));
    assert_ne!(key("a\0", "c"), key("a", "\0c"));
}

#[test]
fn a_joined_key_holds_for_its_params_only() {
    let key = Key::derive(&parts(KeyScope::Global, KeySource::Caller("k")));
    let (one, two) = (Digest::of_bytes("1"), Digest::of_bytes("2"));
    let keys =
        HashSet::from([key, key.joined(&one), key.joined(&two), key.joined(&one).joined(&two)]);
    assert_eq!(keys.len(), 4);
    assert_eq!(key.joined(&one), key.joined(&one));
    assert_eq!(key.short().to_le_bytes(), key.as_bytes()[..8]);
    assert_eq!(Key::from_bytes(*key.as_bytes()), key);
}

#[test]
fn logs_show_fingerprints_only() {
    let digest = Digest::of_bytes("{}");
    let key = Key::derive(&parts(KeyScope::Global, KeySource::Derived(&digest)));
    let process = FingerprintKey::of_process();
    assert_eq!(format!("{key:?}"), format!("Key({})", process.fingerprint(key)));
    assert_eq!(format!("{digest:?}"), format!("Digest({})", process.fingerprint(digest)));
    assert_ne!(process.fingerprint(key).to_string(), key.to_string()[..16]);
    assert_ne!(process.fingerprint(key).to_string(), blake3::hash(key.as_bytes()).to_hex()[..16]);

    let own = FingerprintKey::new([7; 32]);
    let keyed = blake3::keyed_hash(&[7; 32], key.as_bytes()).to_hex();
    assert_eq!(own.fingerprint(key).to_string(), keyed[..16]);
    assert_ne!(own.fingerprint(key), process.fingerprint(key));
    assert_eq!(format!("{own:?}"), "FingerprintKey { .. }");

    let given = parts(session(None, None), KeySource::Caller("secret"));
    assert!(!format!("{given:?}").contains("secret"));
}
