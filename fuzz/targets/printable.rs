//! Any text: nothing of what is printed acts on a terminal, and JSON says what it said.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_core::{printable, printable_json, printable_lines};

fn is_safe(text: &str) -> bool {
    let direction = |c| matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    !text.chars().any(|c| c.is_control() || direction(c))
}

fuzz_target!(|text: &str| {
    let shown = printable(text);
    assert!(is_safe(&shown));
    assert_eq!(printable(&shown), shown, "once is enough");
    assert!(printable_lines(text).split(['\n', '\t']).all(is_safe));

    let json = serde_json::to_string(text).unwrap();
    let shown = printable_json(&json);
    assert!(is_safe(&shown));
    assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
});
