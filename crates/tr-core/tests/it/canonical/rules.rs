//! Dropped members and loosely compared strings.
use tr_core::canonical::{Builder, Canonicalizer, Pointer, Rules, VOLATILE};

fn canonical(json: &str, rules: &Rules) -> String {
    let mut out = Vec::new();
    Canonicalizer::new().write(json, rules, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn drops(pointers: &[&str]) -> Rules {
    let drop = |rules: Builder, text: &&str| rules.drop_at(text.parse().unwrap());
    pointers.iter().fold(Rules::builder().keep_volatile(), drop).build().unwrap()
}

#[test]
fn volatile_members_are_dropped_at_the_top_only() {
    assert_eq!(VOLATILE, ["clientTs", "retryCount", "traceparent", "tracestate", "baggage"]);
    let text = r#"{"clientTs":1,"a":{"retryCount":2},"retryCount":{},"z":0,"traceparent":"",
        "tracestate":null,"b\u0061ggage":[{"x":1}]}"#;
    assert_eq!(canonical(text, &Rules::default()), r#"{"a":{"retryCount":2},"z":0}"#);
    assert_eq!(canonical(r#"[{"clientTs":1}]"#, &Rules::default()), r#"[{"clientTs":1}]"#);
    assert_eq!(canonical(r#"{"clientTs":1}"#, &Rules::default()), "{}");
    let kept = Rules::builder().keep_volatile().build().unwrap();
    assert_eq!(canonical(r#"{"clientTs":1}"#, &kept), r#"{"clientTs":1}"#);
    assert_eq!(canonical(r#"{"clientTs":1}"#, &Rules::exact()), r#"{"clientTs":1}"#);
}

#[test]
fn pointers_drop_members_and_elements_anywhere() {
    let text = r#"{"m":[{"at":1,"x":0},{"at":2}],"a/b":{"~":1,"":2},"at":3}"#;
    for (pointers, canonical_form) in [
        (&["/m/0/at"][..], r#"{"a/b":{"":2,"~":1},"at":3,"m":[{"x":0},{"at":2}]}"#),
        (&["/m/0"], r#"{"a/b":{"":2,"~":1},"at":3,"m":[{"at":2}]}"#),
        (&["/m/1", "/m/0"], r#"{"a/b":{"":2,"~":1},"at":3,"m":[]}"#),
        (
            &["/m/01", "/m/2", "/m/-"],
            r#"{"a/b":{"":2,"~":1},"at":3,"m":[{"at":1,"x":0},{"at":2}]}"#,
        ),
        (&["/a~1b/~0", "/m", "/at"], r#"{"a/b":{"":2}}"#),
        (&["/a~1b/", "/m", "/m/0/at"], r#"{"a/b":{"~":1},"at":3}"#),
    ] {
        assert_eq!(canonical(text, &drops(pointers)), canonical_form, "{pointers:?}");
    }
    assert_eq!(canonical(r#"{"0":1,"1":2}"#, &drops(&["/0"])), r#"{"1":2}"#);
}

#[test]
fn loose_white_space_is_opt_in() {
    let (text, exact) =
        ("{\"q\":\" a \\n\\t b\\u00a0\\u2003c\\u000b\",\"code\":\"a  b\"}", Rules::default());
    assert_eq!(
        canonical(text, &exact),
        "{\"code\":\"a  b\",\"q\":\" a \\n\\t b\u{a0}\u{2003}c\\u000b\"}"
    );
    let loose = Rules::builder().loose_whitespace_at("/q".parse().unwrap()).build().unwrap();
    assert_eq!(canonical(text, &loose), r#"{"code":"a  b","q":"a b c"}"#);
    // Escapes that are no white space stay; only words move.
    assert_eq!(canonical(r#"{"q":"\\n \" \u0001 \\ "}"#, &loose), r#"{"q":"\\n \" \u0001 \\"}"#);
    assert_eq!(canonical(r#"{"q":" \n "}"#, &loose), r#"{"q":""}"#);
    assert_eq!(canonical(r#"{"q":{"  n":["x  y"]}}"#, &loose), r#"{"q":{"  n":["x y"]}}"#);
    let both = Rules::builder().loose_whitespace_at("/q".parse().unwrap());
    let both = both.drop_at("/q/n/at".parse().unwrap()).build().unwrap();
    assert_eq!(
        canonical(r#"{"q":{"n":{"at":0,"x":"a  b"}}}"#, &both),
        r#"{"q":{"n":{"x":"a b"}}}"#
    );
    let everywhere = Rules::builder().loose_whitespace_at("".parse().unwrap()).build().unwrap();
    assert_eq!(canonical(r#"["a  b",[" c"]]"#, &everywhere), r#"["a b",["c"]]"#);
}

#[test]
fn pointers_are_checked_once() {
    for text in ["a", "a/b", "/~", "/~2", "/a~", "~0"] {
        let error = text.parse::<Pointer>().unwrap_err();
        assert_eq!(error.to_string(), format!("not a JSON pointer: {text:?}"));
    }
    for (text, tokens) in [("", &[][..]), ("/", &[""]), ("//", &["", ""]), ("/~01/ü", &["~1", "ü"])]
    {
        let pointer: Pointer = text.parse().unwrap();
        assert_eq!(pointer.tokens().collect::<Vec<_>>(), tokens);
        assert_eq!(pointer.to_string(), text);
    }
    let error = Rules::builder().drop_at("".parse().unwrap()).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid canonical form configuration: a pointer to drop names the whole document"
    );
}
