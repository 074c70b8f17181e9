//! The seed's key formula, and why it is not the one we use.
use tr_core::canonical::{Key, KeyParts, KeyScope, KeySource, Rules, interchange::SeedKey};

#[test]
fn the_seeds_formula_holds_to_the_letter() {
    let key =
        SeedKey { namespace: "agents.tools.messaging", tool: "send", session: "s1", actor: "u1" };
    let params = r#"{"to": "bob", "n": 1.0, "clientTs": 1700000000000}"#;
    // printf 'agents.tools.messaging::send::{"n":1,"to":"bob"}::s1::u1' | sha256sum
    assert_eq!(
        key.derive(params, &Rules::default()).unwrap(),
        "a146f84e86444d91420bb917237c9974fb047a80fcd2f9fb1566ddabfb934e8d"
    );
    assert!(key.derive("{", &Rules::default()).is_err());
}

#[test]
fn the_seeds_formula_merges_what_ours_keeps_apart() {
    let [one, two] = [("a::b", "c"), ("a", "b::c")];
    let seed = |(session, actor)| {
        let key = SeedKey { namespace: "n", tool: "t", session, actor };
        key.derive("{}", &Rules::default()).unwrap()
    };
    let ours = |(session, actor)| {
        let (session, actor) = (Some(session), Some(actor));
        Key::derive(&KeyParts {
            scope: KeyScope::Session { tenant: None, workspace: None, session, actor },
            namespace: Some("n"),
            tool: "t",
            action: None,
            source: KeySource::Caller("k"),
            step: None,
        })
    };
    assert_eq!(seed(one), seed(two));
    assert_ne!(ours(one), ours(two));
}
