//! Which fault is reported, at which byte, at which pointer.
use tr_core::canonical::{Canonicalizer, ErrorKind, MAX_DEPTH, Rules, to_string};

#[track_caller]
fn refuses(json: impl AsRef<[u8]>, kind: ErrorKind, offset: usize, pointer: &str) {
    let error = to_string(json).unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.pointer()), (kind, offset, pointer));
}

#[test]
fn faults_are_named_with_their_place() {
    refuses("", ErrorKind::UnexpectedEnd, 0, "");
    refuses(" \n", ErrorKind::UnexpectedEnd, 2, "");
    refuses("{} x", ErrorKind::TrailingData, 3, "");
    refuses("01", ErrorKind::TrailingData, 1, "");
    refuses("[1,]", ErrorKind::UnexpectedByte, 3, "/1");
    refuses("[1 2]", ErrorKind::UnexpectedByte, 3, "");
    refuses("[1}", ErrorKind::UnexpectedByte, 2, "");
    refuses(r#"{"a":1,}"#, ErrorKind::UnexpectedByte, 7, "");
    refuses(r#"{"a" 1}"#, ErrorKind::UnexpectedByte, 5, "");
    refuses(r#"{"a":tru"#, ErrorKind::UnexpectedEnd, 8, "/a");
    refuses(r#"{"a":trux}"#, ErrorKind::UnexpectedByte, 8, "/a");
    refuses(r#"["abc"#, ErrorKind::UnexpectedEnd, 5, "/0");
    refuses("[\"a\tb\"]", ErrorKind::ControlCharacter, 3, "/0");
    refuses(r#"["long enough for a word\x"]"#, ErrorKind::InvalidEscape, 24, "/0");
    refuses(r#"["\u12g4"]"#, ErrorKind::InvalidEscape, 2, "/0");
    refuses(r#"["\u12"#, ErrorKind::UnexpectedEnd, 6, "/0");
    refuses("[-]", ErrorKind::UnexpectedByte, 2, "/0");
    refuses("[1.]", ErrorKind::UnexpectedByte, 3, "/0");
    refuses("[1e+]", ErrorKind::UnexpectedByte, 4, "/0");
    refuses("1e", ErrorKind::UnexpectedEnd, 2, "");
}

#[test]
fn numbers_without_a_value_are_refused() {
    for token in ["NaN", "Infinity", "-Infinity"] {
        refuses(format!(r#"{{"n":{token}}}"#), ErrorKind::NotFinite, 5, "/n");
    }
    refuses(r#"{"n":1e400}"#, ErrorKind::NumberOverflow, 5, "/n");
    refuses(r#"{"n":-1.0e400}"#, ErrorKind::NumberOverflow, 5, "/n");
    refuses("[Nan]", ErrorKind::UnexpectedByte, 1, "/0");
}

#[test]
fn text_that_is_no_unicode_is_refused() {
    refuses("\u{feff}{}", ErrorKind::ByteOrderMark, 0, "");
    refuses(b"{\"a\":[0,\"\xff\"]}", ErrorKind::InvalidUtf8, 9, "/a/1");
    refuses(b"[\"\xed\xa0\x80\"]", ErrorKind::LoneSurrogate, 2, "/0");
    refuses(b"{} \xff", ErrorKind::InvalidUtf8, 3, "");
    // The first fault wins, wherever the bad byte is.
    refuses(b"{\"a\":[1,], \"\xff\"}", ErrorKind::UnexpectedByte, 8, "/a/1");
    for half in [r"\ud800", r"\udc00", r"\ud800\u0041", r"\ud800\n", r"\udc00\ud800"] {
        refuses(format!(r#"["{half}"]"#), ErrorKind::LoneSurrogate, 2, "/0");
    }
    assert_eq!(to_string(r#""\ud83d\ude02""#).unwrap(), "\"\u{1f602}\"");
}

#[test]
fn control_characters_are_found_wherever_they_stand() {
    for control in '\0'..' ' {
        for before in 0..20 {
            let text = format!("\"{}{control}{}\"", "x".repeat(before), "é".repeat(20 - before));
            refuses(text, ErrorKind::ControlCharacter, before + 1, "");
        }
    }
}

#[test]
fn duplicates_are_found_after_unescaping_and_named_by_the_later_one() {
    refuses(r#"{"a":1,"b":2,"\u0061":3}"#, ErrorKind::DuplicateName, 13, "/a");
    refuses(r#"{"o":{"x":1,"/~":0,"x":1,"/~":0}}"#, ErrorKind::DuplicateName, 19, "/o/x");
    refuses(r#"{"o":{"/~":1,"x":0,"/~":1,"x":0}}"#, ErrorKind::DuplicateName, 19, "/o/~1~0");
    refuses(r#"{"\n":1,"\u000a":1}"#, ErrorKind::DuplicateName, 8, "/\n");
    refuses(r#"{"a":1,"a":2,"a":3}"#, ErrorKind::DuplicateName, 7, "/a");
    refuses(
        r#"{"long enough":"a","long enough":"b"}"#,
        ErrorKind::DuplicateName,
        19,
        "/long enough",
    );
    refuses(r#"{"a":"for a prefix","a":"of its own"}"#, ErrorKind::DuplicateName, 20, "/a");
    // Dropped members are still read: rules never make an invalid text valid.
    let text = r#"{"clientTs":1,"clientTs":1}"#;
    let error = Canonicalizer::new().write(text, &Rules::default(), &mut Vec::new()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::DuplicateName, 14));
}

#[test]
fn nesting_ends_at_the_limit() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(to_string(nested(MAX_DEPTH)).unwrap(), nested(MAX_DEPTH));
    let siblings = format!("[{}[]]", "{},[],".repeat(MAX_DEPTH));
    assert_eq!(to_string(&siblings).unwrap(), siblings);
    let pointer = "/0".repeat(MAX_DEPTH);
    refuses(nested(MAX_DEPTH + 1), ErrorKind::TooDeep, MAX_DEPTH, &pointer);
    refuses(
        "[{\"\":".repeat(1_000_000),
        ErrorKind::TooDeep,
        5 * MAX_DEPTH / 2,
        &"/0/".repeat(MAX_DEPTH / 2),
    );
}

#[test]
fn a_fault_leaves_the_output_and_the_next_text_alone() {
    let (mut canonicalizer, mut out) = (Canonicalizer::new(), b"before ".to_vec());
    for fault in [r#"{"b":1,"a":{"c":1,"c":"#, r#"[{"z":[{"a":1,"a":1}]}]"#] {
        canonicalizer.write(fault, &Rules::exact(), &mut out).unwrap_err();
        assert_eq!(out, b"before ");
    }
    canonicalizer.write(r#"{"b":1,"a":2}"#, &Rules::exact(), &mut out).unwrap();
    assert_eq!(out, br#"before {"a":2,"b":1}"#);
}

#[test]
fn the_message_says_what_and_where_but_not_the_text() {
    let error = to_string(r#"{"card":"4111 1111","card":"4111 1111"}"#).unwrap_err();
    assert_eq!(error.to_string(), "duplicate member name at byte 20, in /card");
    assert_eq!(to_string("nul").unwrap_err().to_string(), "unexpected end at byte 3");
    assert!(!format!("{error:?}").contains("4111"));
    let mut canonicalizer = Canonicalizer::new();
    canonicalizer.write(r#"{"b":"4111","a":0}"#, &Rules::exact(), &mut Vec::new()).unwrap();
    assert_eq!(format!("{canonicalizer:?}"), "Canonicalizer { .. }");
}
