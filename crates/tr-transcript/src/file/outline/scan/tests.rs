//! The scanner accepts what serde accepts.
use super::{IgnoredAny, Scan};
use proptest::{collection::vec, prelude::*, sample::select};

const PARTS: [&str; 34] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"a\"",
    "\"",
    "\\",
    "\\n",
    "\\u00e9",
    "\\ud800",
    "\\u12",
    "0",
    "1",
    "-",
    ".",
    "5",
    "e",
    "E+",
    "true",
    "false",
    "null",
    "nul",
    " ",
    "\t",
    "\u{1}",
    "é",
    "\"a\":1",
    "\"b\":[]",
    "{}",
    "\"a text that is longer than a block of thirty-two bytes\"",
    "\"\u{7f}\"",
    "x",
];

fn is_json(text: &str) -> bool {
    let mut scan = Scan::new(text, usize::MAX);
    scan.skip_value().is_some() && scan.is_done()
}

proptest! {
    #[test]
    fn accepts_what_serde_accepts(parts in vec(select(&PARTS[..]), 0..12)) {
        let text = parts.concat();
        let expected = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(is_json(&text), expected, "{}", text);
    }

    #[test]
    fn agrees_with_serde_on_corrupted_strings(
        texts in vec(".{0,70}", 1..4), at in 0..4_usize, byte: u8,
    ) {
        let mut bytes = serde_json::to_vec(&texts).unwrap();
        let index = at * 37 % bytes.len();
        bytes[index] = byte;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        let expected = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(is_json(&text), expected, "{}", text);
    }
}

#[test]
fn skips_values_of_any_depth() {
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!([64, 65, 1_000_000].iter().all(|depth| is_json(&deep(*depth))));
    assert!(is_json(&format!("[{}, 1]", deep(100))));
    assert!(!is_json(&deep(100)[1..]) && !is_json(&deep(100)[..150]));
}
