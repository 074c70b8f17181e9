//! The vectors of RFC 8785 and JSONTestSuite.
use std::{collections::BTreeMap, fs, path::PathBuf};
use tr_core::canonical::{self, Error, ErrorKind};

fn data(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

fn kind(json: &[u8]) -> Result<String, ErrorKind> {
    canonical::to_string(json).map_err(|error: Error| error.kind())
}

/// All six hold as they are: none has an integer token beyond 2^53.
#[test]
fn rfc_8785() {
    let (inputs, outputs, hex) =
        (data("rfc8785/input"), data("rfc8785/output"), data("rfc8785/outhex"));
    assert_eq!((inputs.len(), outputs.len(), hex.len()), (6, 6, 6));
    for (name, input) in inputs {
        let ours = canonical::to_string(&input).unwrap();
        assert_eq!(ours.as_bytes(), outputs[&name], "{name}");
        let digits = str::from_utf8(&hex[&name.replace("json", "txt")]).unwrap();
        let bytes = digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
        assert!(bytes.eq(ours.bytes()), "{name}");
        assert_eq!(canonical::to_string(&ours).unwrap(), ours, "{name}");
    }
}

#[test]
fn json_test_suite_accepts_and_refuses() {
    let cases = data("jsontestsuite/test_parsing");
    assert_eq!(cases.len(), 318);
    for (name, json) in cases {
        let ours = kind(&json);
        match name.split_once('_').unwrap() {
            ("y", "object_duplicated_key.json" | "object_duplicated_key_and_value.json") => {
                assert_eq!(ours, Err(ErrorKind::DuplicateName), "{name}");
            }
            ("y", _) => assert!(ours.is_ok(), "{name}: {ours:?}"),
            ("n", _) => assert!(ours.is_err(), "{name}: {ours:?}"),
            ("i", open) => assert_eq!(ours, pinned(open), "{name}"),
            other => panic!("{other:?}"),
        }
    }
}

/// What the suite leaves open.
fn pinned(name: &str) -> Result<String, ErrorKind> {
    let accepted = match name.trim_end_matches(".json") {
        "number_double_huge_neg_exp" | "number_real_underflow" => "[0]",
        "number_too_big_neg_int" => "[-123123123123123123123123123123]",
        "number_too_big_pos_int" => "[100000000000000000000]",
        "number_very_big_negative_int" => "[-237462374673276894279832749832423479823246327846]",
        "number_huge_exp"
        | "number_neg_int_huge_exp"
        | "number_pos_double_huge_exp"
        | "number_real_neg_overflow"
        | "number_real_pos_overflow" => return Err(ErrorKind::NumberOverflow),
        "object_key_lone_2nd_surrogate"
        | "string_1st_surrogate_but_2nd_missing"
        | "string_1st_valid_surrogate_2nd_invalid"
        | "string_UTF8_surrogate_U+D800"
        | "string_incomplete_surrogate_and_escape_valid"
        | "string_incomplete_surrogate_pair"
        | "string_incomplete_surrogates_escape_valid"
        | "string_invalid_lonely_surrogate"
        | "string_invalid_surrogate"
        | "string_inverted_surrogates_U+1D11E"
        | "string_lone_second_surrogate" => return Err(ErrorKind::LoneSurrogate),
        "string_UTF-16LE_with_BOM"
        | "string_UTF-8_invalid_sequence"
        | "string_invalid_utf-8"
        | "string_iso_latin_1"
        | "string_lone_utf8_continuation_byte"
        | "string_not_in_unicode_range"
        | "string_overlong_sequence_2_bytes"
        | "string_overlong_sequence_6_bytes"
        | "string_overlong_sequence_6_bytes_null"
        | "string_truncated-utf-8" => return Err(ErrorKind::InvalidUtf8),
        "string_utf16BE_no_BOM" | "string_utf16LE_no_BOM" => {
            return Err(ErrorKind::UnexpectedByte);
        }
        "structure_500_nested_arrays" => return Err(ErrorKind::TooDeep),
        "structure_UTF-8_BOM_empty_object" => return Err(ErrorKind::ByteOrderMark),
        other => panic!("{other} is not pinned"),
    };
    Ok(accepted.to_owned())
}

#[test]
fn json_test_suite_transforms() {
    let cases = data("jsontestsuite/test_transform");
    assert_eq!(cases.len(), 22);
    for (name, json) in cases {
        let expected = match name.trim_end_matches(".json") {
            "number_-9223372036854775808" => Ok("[-9223372036854775808]"),
            "number_-9223372036854775809" => Ok("[-9223372036854775809]"),
            "number_1.0" | "number_1.000000000000000005" => Ok("[1]"),
            "number_1000000000000000" => Ok("[1000000000000000]"),
            "number_10000000000000000999" => Ok("[10000000000000000999]"),
            "number_1e-999" => Ok("[0]"),
            "number_1e6" => Ok("[1000000]"),
            "number_9223372036854775807" => Ok("[9223372036854775807]"),
            "number_9223372036854775808" => Ok("[9223372036854775808]"),
            // Two names, whichever comes first: the composed one sorts behind the other.
            "object_key_nfc_nfd" | "object_key_nfd_nfc" => {
                Ok("{\"e\u{301}\":\"NFD\",\"\u{e9}\":\"NFC\"}")
            }
            "object_same_key_different_values"
            | "object_same_key_same_value"
            | "object_same_key_unclear_values" => Err(ErrorKind::DuplicateName),
            "string_with_escaped_NULL" => Ok(r#"["A\u0000B"]"#),
            "string_1_escaped_invalid_codepoint"
            | "string_1_invalid_codepoint"
            | "string_2_escaped_invalid_codepoints"
            | "string_2_invalid_codepoints"
            | "string_3_escaped_invalid_codepoints"
            | "string_3_invalid_codepoints" => Err(ErrorKind::LoneSurrogate),
            other => panic!("{other} is not pinned"),
        };
        assert_eq!(kind(&json), expected.map(str::to_owned), "{name}");
    }
}
