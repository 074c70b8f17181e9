//! Records behind and among bytes that are none, and the numbers of their lines.
use super::*;
use proptest::prelude::*;

/// The records and the bytes that are none, each with its line.
fn pieces(bytes: &[u8], is_trusting: bool) -> Vec<(u64, u64, String)> {
    let mut records = Records::new(bytes).max_record(1 << 20);
    if is_trusting {
        records.trust();
    }
    let mut found = Vec::new();
    loop {
        let (offset, is_glued) = match records.next().unwrap() {
            None => return found,
            Some(Piece::Skipped(it)) => {
                let (line, start, why) = (it.line, it.offset, it.why);
                found.push((line, start, format!("{why:?} {}", it.length)));
                continue;
            }
            Some(Piece::Record(it)) => {
                if recover::is_json(it.text.as_bytes()) {
                    found.push((it.line, it.offset, it.text.clone().into_owned()));
                    continue;
                }
                (it.offset, it.is_glued)
            }
        };
        assert!(is_trusting, "a record that is none at {offset}");
        records.distrust(offset, is_glued);
    }
}

proptest! {
    /// A check trusts lines, and a repair does not.
    #[test]
    fn trust_finds_the_same_records(parts in prop::collection::vec(prop::sample::select(vec![
        "{\"a\":\"", "\"}", "{\"b\":{\"c\":[1]}}", "x", " ", "\n", "\r\n", "\u{feff}", "\0", "\\", "}", "{", "é", ",",
    ]), 0..24)) {
        let file = parts.concat();
        let bytes = file.as_bytes();
        let found = pieces(bytes, false);
        prop_assert_eq!(&found, &pieces(bytes, true));
        for (line, offset, what) in found {
            let breaks = memchr::memchr_iter(b'\n', &bytes[..offset as usize]).count() as u64;
            // A line break inside of a record is on the record's first line.
            prop_assert!(line == breaks + 1 || what.starts_with("LineBreak"), "{} {}", line, what);
        }
    }
}

#[test]
fn a_divided_record_is_found_wherever_its_line_begins() {
    let record = "{\"a\":\"paid\nok\"}";
    let whole = (r#"{"a":"paid\nok"}"#.to_owned(), 1);
    for before in
        ["", " ", "\t \r", "\u{feff}", "\u{feff} ", "{\"torn\":\"x\n", "{\"b\":1}\n", "\0\0"]
    {
        for behind in ["", "\n", " \n{\"b\":1}\n", "\r\n"] {
            let found = pieces(format!("{before}{record}{behind}").as_bytes(), false);
            let of_it = found.iter().filter(|(_, _, text)| *text == whole.0).count();
            assert_eq!(of_it, whole.1, "{before:?} {behind:?} {found:?}");
        }
    }
}

/// Written as `\\n` it would be a backslash and an `n`.
#[test]
fn a_break_behind_a_backslash_leaves_its_record_torn() {
    assert!(
        pieces(b"{\"a\":\"x\\\ny\"}\n", false).iter().all(|(.., what)| what.starts_with("Torn"))
    );
    let found = pieces(b"{\"a\":\"x\\\\\ny\"}\n", false);
    assert_eq!(found.last().unwrap().2, r#"{"a":"x\\\ny"}"#);
}

/// Each break was found by reading all of the record behind it.
#[test]
fn many_line_breaks_take_no_longer_than_their_bytes() {
    let file = format!("{{\"a\":\"{}\"}}\n", "x\n".repeat(200_000));
    assert_eq!(pieces(file.as_bytes(), false).len(), 200_001);
    let torn = "{\"a\":[\"x\n".repeat(100_000);
    assert_eq!(pieces(torn.as_bytes(), false).len(), 100_000);
}
