//! Foreign text for a terminal or a log: what would act there is shown instead.
use std::{borrow::Cow, fmt::Write as _};

/// `text` with every character escaped that would act on a terminal, break a line, or change the
/// order in which others are read.
///
/// These are control characters (C0, DEL and C1, line breaks and tabs included), the marks and
/// overrides of writing direction, line and paragraph separators, and characters that are never
/// seen (U+FEFF, annotations, tags). They are written as Rust does: `\n`, `\u{1b}`. All others stay,
/// so text that has been made printable stays as it is.
///
/// ```
/// use tr_core::printable;
///
/// assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
/// assert_eq!(printable("Größe 日本 👩‍💻"), "Größe 日本 👩‍💻");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, acts, as_rust_does)
}

/// The same for a text of one's own that has lines, or for lines of a foreign one: breaks between
/// lines (`\n`) and tabs stay.
///
/// ```
/// assert_eq!(tr_core::printable_lines("a\r\nb\u{9b}"), "a\\r\nb\\u{9b}");
/// ```
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !matches!(c, '\n' | '\t') && acts(c), as_rust_does)
}

/// A JSON text with the same characters escaped as JSON does (`\u009b`). What a JSON text says
/// stays: within its strings every character may be escaped, and outside of them none of these
/// stands but line breaks and tabs, which stay.
///
/// ```
/// assert_eq!(tr_core::printable_json("[\"\u{202e}x\"]\n"), "[\"\\u202ex\"]\n");
/// ```
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    // Within strings, JSON has no others of C0.
    escaped(
        json,
        |c| c >= '\u{7f}' && acts(c),
        |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

/// Whether a character does anything but be seen.
const fn acts(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Writing direction.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Line breaks and invisible characters.
        | '\u{2028}' | '\u{2029}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

fn as_rust_does(c: char, out: &mut String) {
    out.extend(c.escape_default());
}

fn escaped(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let (before, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(before);
    for c in rest.chars() {
        if is_escaped(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By what Unicode says of characters, and not by the list above.
    fn is_safe(c: char) -> bool {
        let bidi = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        !c.is_control() && !bidi.contains(c) && !"\u{2028}\u{2029}\u{feff}".contains(c)
    }

    #[test]
    fn every_character_is_safe_in_the_end() {
        for c in '\0'..=char::MAX {
            let shown = printable(c.encode_utf8(&mut [0; 4])).into_owned();
            assert!(!shown.is_empty() && shown.chars().all(is_safe), "{c:?}: {shown}");
            if c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric() {
                assert_eq!(shown, c.to_string());
            }
        }
    }

    #[test]
    fn attacks_are_shown() {
        for (attack, shown) in [
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}31mred", "\\u{9b}31mred"),
            ("ok\r✗ not", "ok\\r✗ not"),
            ("s.json\n✓ t.json", "s.json\\n✓ t.json"),
            ("exe\u{202e}txt.", "exe\\u{202e}txt."),
            ("a\u{2028}b\u{85}c", "a\\u{2028}b\\u{85}c"),
            ("\u{e0041}\u{8}", "\\u{e0041}\\u{8}"),
        ] {
            assert_eq!(printable(attack), shown);
            assert_eq!(printable(shown), shown, "once is enough");
        }
        assert_eq!(printable_json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
    }

    proptest! {
        #[test]
        fn any_text_is_safe_and_stays_what_it_was(text in "(?s).*") {
            let shown = printable(&text);
            prop_assert!(shown.chars().all(is_safe));
            prop_assert_eq!(printable(&shown), &*shown);
            if text.chars().all(is_safe) && !text.chars().any(acts) {
                prop_assert!(matches!(shown, Cow::Borrowed(_)));
            }
            let parts = text.split_inclusive(['\n', '\t']).map(|part| {
                let end = part.len() - part.trim_end_matches(['\n', '\t']).len();
                let (part, end) = part.split_at(part.len() - end);
                format!("{}{end}", printable(part))
            });
            prop_assert_eq!(printable_lines(&text), parts.collect::<String>());
        }

        #[test]
        fn json_says_what_it_said(text in "(?s).*", key in "(?s).*") {
            let json = serde_json::json!({ key: [text] });
            for json in [json.to_string(), format!("{json:#}")] {
                let shown = printable_json(&json);
                prop_assert!(shown.chars().all(|c| is_safe(c) || c == '\n'));
                prop_assert_eq!(
                    serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
                    serde_json::from_str::<serde_json::Value>(&json).unwrap()
                );
            }
        }
    }
}
