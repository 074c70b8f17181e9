//! How numbers are printed, and names sorted.
use tr_core::canonical::to_string;

#[track_caller]
fn prints(json: &str, canonical: &str) {
    assert_eq!(to_string(json).unwrap(), canonical);
    assert_eq!(to_string(canonical).unwrap(), canonical);
}

#[test]
fn integer_tokens_stay_exact_at_any_size() {
    prints("9007199254740993", "9007199254740993");
    prints(
        "[1175928847299117063,1175928847299117064]",
        "[1175928847299117063,1175928847299117064]",
    );
    let digits = "7".repeat(10_000);
    prints(&digits, &digits);
    prints("-0", "0");
    prints("-10", "-10");
}

/// The samples of RFC 8785, appendix B, written with 17 digits, and the edges of each layout.
#[test]
fn other_numbers_print_as_ecmascript_does() {
    for (json, canonical) in [
        ("1.0", "1"),
        ("-0.0", "0"),
        ("-0e5", "0"),
        ("0.000", "0"),
        ("1e6", "1000000"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("123456789012345680000.0", "123456789012345680000"),
        ("0.000001", "0.000001"),
        ("0.0000010", "0.000001"),
        ("0.0000001", "1e-7"),
        ("-0.0000001", "-1e-7"),
        ("0.00000123", "0.00000123"),
        ("0.00000012", "1.2e-7"),
        ("100.50", "100.5"),
        ("-100.0", "-100"),
        ("1E-7", "1e-7"),
        ("4.9406564584124654e-324", "5e-324"),
        ("-4.9406564584124654e-324", "-5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("9007199254740992.0", "9007199254740992"),
        ("9007199254740993.0", "9007199254740992"),
        ("2.9514790517935283e20", "295147905179352830000"),
        ("9.999999999999997e22", "9.999999999999997e+22"),
        ("1e23", "1e+23"),
        ("1.0000000000000001e23", "1.0000000000000001e+23"),
        ("999999999999999700000.0", "999999999999999700000"),
        ("999999999999999900000.0", "999999999999999900000"),
        ("9.00719925474099", "9.00719925474099"),
        ("9.007199254740999", "9.007199254741"),
        ("9.007199254741001", "9.007199254741002"),
        ("333333333.33333325", "333333333.33333325"),
        ("333333333.33333329", "333333333.3333333"),
        ("333333333.3333332", "333333333.3333332"),
        ("1424953923781206.2", "1424953923781206.2"),
        ("-0.0000033333333333333333", "-0.0000033333333333333333"),
    ] {
        prints(json, canonical);
    }
}

/// The price of exact integers: beyond 1e21, the two spellings of an integer stay apart.
#[test]
fn an_integer_of_22_digits_is_not_the_double_beside_it() {
    prints("1000000000000000000000", "1000000000000000000000");
    prints("1000000000000000000000.0", "1e+21");
}

#[test]
fn names_sort_by_utf_16_code_units() {
    // U+1F600 is D83D DE00 in UTF-16: before U+E000 and U+FB33, though its code point is greater.
    prints(
        "{\"\u{fb33}\":0,\"\u{1f600}\":1,\"\u{e000}\":2,\"\u{d7ff}\":3,\"\u{ffff}\":4,\"\u{10ffff}\":5}",
        "{\"\u{d7ff}\":3,\"\u{1f600}\":1,\"\u{10ffff}\":5,\"\u{e000}\":2,\"\u{fb33}\":0,\"\u{ffff}\":4}",
    );
    // The same where the names differ only past the eighth byte.
    prints(
        "{\"same same\u{e000}\":0,\"same same\u{1f600}\":1,\"same same\":2}",
        "{\"same same\":2,\"same same\u{1f600}\":1,\"same same\u{e000}\":0}",
    );
    prints(r#"{"a !":"zero","a":"one","a ":"two"}"#, r#"{"a":"one","a ":"two","a !":"zero"}"#);
    // Escapes sort as what they stand for, not as backslashes.
    prints(
        r#"{"a":0,"Z":1,"\"":2,"\\":3,"\n":4,"\u0000":5,"":6,"!":7,"[":8,"]":9}"#,
        r#"{"":6,"\u0000":5,"\n":4,"!":7,"\"":2,"Z":1,"[":8,"\\":3,"]":9,"a":0}"#,
    );
    prints(
        r#"{"aaaaaaaa\n":0,"aaaaaaaa":1,"aaaaaaaa\t":2}"#,
        r#"{"aaaaaaaa":1,"aaaaaaaa\t":2,"aaaaaaaa\n":0}"#,
    );
}

#[test]
fn strings_escape_only_what_they_must() {
    prints(r#""\u0041\/\u00e9\u007f""#, "\"A/\u{e9}\u{7f}\"");
    prints(
        r#""\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001F\u0022\u005C""#,
        r#""\u0000\b\t\n\u000b\f\r\u001f\"\\""#,
    );
    // Composed and decomposed stay what they are.
    prints("\"\u{e9}e\u{301}\"", "\"\u{e9}e\u{301}\"");
}
