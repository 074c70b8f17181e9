//! The words, the verdict and the hash of any text are those of the model.
use super::{super::*, model};
use proptest::{prelude::*, sample::select};

/// What decides about words, in all spellings.
const PIECES: &[&str] = &[
    "timestamp",
    "ts",
    "Time",
    "date_time",
    "NOW",
    "elapsed_ms",
    "duration-s",
    "took",
    "latencyµs",
    "age",
    "request_id",
    "requestId",
    "trace-parent",
    "_ts",
    "-time",
    ".now.",
    "t-s",
    "t.s.",
    "t_S_",
    "«ts»",
    "t£s",
    "tsé",
    "étime",
    "ti\u{301}me",
    "tsx",
    "times",
    "timeouts",
    "date2",
    "n",
    "r",
    "t",
    "na",
    "rows",
    "tx",
    "1",
    "42",
    "3.25",
    "1.",
    "0",
    "12ms",
    "3.4s",
    "1h5m30s",
    "5µs",
    "5μs",
    "7s.",
    "9d5",
    "1hx",
    "12MS",
    "1.2.3",
    "1e9",
    "2026-11-22",
    "2026-11-22T10:00:00.5Z",
    "2026-11-22T10:00:00+01:00.",
    "2026-11-22-001.csv",
    "2026-11-2",
    "2026-11-22x",
    "10:00:00",
    "1:02:03.4",
    "10:00",
    "10:00:00-a",
    "1:2",
    "a1:2b",
    ":",
    "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
    "7F9619FF-8B86-D011-B42D-00CF4FC964FE",
    "cf9619ff-8b86-d011-b42d-00cf4fc964ff",
    "gf9619ff-8b86-d011-b42d-00cf4fc964ff",
    "6f9619ff-8b86-d011-b42d-00cf4fc964f",
    "6f9619ff-8b86-d011-b42d-00cf4fc964ffa",
    "µs",
    "ms",
    "MS",
    "s",
    "secs",
    "Minutes",
    "m.",
    "days",
    "hrs",
    "pending",
    "Queued",
    "RUNNING",
    "in_progress",
    "In-Progress",
    "IN PROGRESS",
    "CREATE_IN_PROGRESS",
    "_in_progress",
    "xin_progress",
    "still",
    "Still.",
    "waiting",
    "wait",
    "pod-initializing",
    "ContainerCreating",
    "run_ning",
    "w-orking",
    "working",
    "cursor",
    "CURSOR",
    "next",
    "é",
    "ß",
    "日本語",
    "Сегодня",
    "e\u{301}",
    "\u{200b}",
    "\u{feff}",
    "🙂",
    "…",
    "“time”",
    "a\u{a0}b",
    "x\u{3000}y",
    "-",
    "---",
    "+",
    ".",
    "_",
    "--ts",
    "/",
    "path/to/a.rs",
    "aGVsbG8+d29ybGQ/Zm9v0123456789abcdefghijklmnopqrstuvwxyz==",
];

/// What stands between words.
const GAPS: &[&str] = &[
    " ",
    " ",
    " ",
    "  ",
    "",
    ": ",
    ":",
    "=",
    " = ",
    "\":\"",
    "\": ",
    "\":",
    "\"",
    "'",
    "', '",
    ",",
    ", ",
    ",\"",
    "{",
    "{\"",
    "}",
    "}}",
    "[",
    "]",
    "(",
    ")",
    " (",
    ";",
    "|",
    " | ",
    "\n",
    "\r\n",
    "\t",
    "\\n",
    "\\t",
    "\\r",
    "\\\\n",
    "\\",
    "\\\"",
    "\\\":\\\"",
    "\\\": ",
    "\u{a0}",
    "\u{85}",
    "\u{1680}",
    "\u{2000}",
    "\u{2028}",
    "\u{202f}",
    "\u{205f}",
    "\u{3000}",
    "\u{0}",
    "\u{7f}",
    "\u{b}",
    "/",
    "@",
    "#",
    "`",
    "~",
    "%",
    "$",
    "<",
    ">",
    "^",
];

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => select(PIECES).prop_map(str::to_owned),
        1 => "[a-z]{1,20}",
        1 => "[0-9]{1,11}",
        1 => "[0-9.:smhdnuTZ+-]{1,12}",
        1 => "[ntr.:_+A-Za-z0-9-]{1,8}",
        1 => any::<char>().prop_map(String::from),
        1 => any::<String>(),
    ];
    let pieces = prop::collection::vec((piece, select(GAPS)), 0..60);
    (pieces, 0usize..12, 0u8..3).prop_map(|(pieces, cut, escapes)| {
        let mut text: String = pieces.iter().flat_map(|(word, gap)| [word, *gap]).collect();
        for _ in 0..escapes {
            text = serde_json::json!([{ "text": text }]).to_string();
        }
        let end = text.char_indices().rev().nth(cut).map_or(0, |(at, c)| at + c.len_utf8());
        text.truncate(end);
        text
    })
}

fn volatile() -> Vec<Box<str>> {
    ["cursor", "Next", "日本語", "-"].map(Box::from).into()
}

fn words<'t>(text: &'t str, volatile: &[Box<str>]) -> Vec<&'t str> {
    Words::new(text, volatile).map(|at| &text[at]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_words_are_the_model_s(text in texts()) {
        for volatile in [Vec::new(), volatile()] {
            prop_assert_eq!(words(&text, &volatile), model::words(&text, &volatile));
        }
    }

    #[test]
    fn the_verdict_is_the_model_s(text in texts()) {
        for volatile in [Vec::new(), volatile()] {
            let read = Compared::read(&text, &volatile);
            prop_assert_eq!(read.pending, model::is_pending(&text, &volatile));
        }
    }

    /// A hash is one of the words: neighbors that differ by a piece are told apart as the model does.
    #[test]
    fn hashes_are_equal_where_the_model_s_words_are(
        text in texts(), at in any::<prop::sample::Index>(), piece in select(PIECES), gap in select(GAPS)
    ) {
        let at = (0..=at.index(text.len() + 1)).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
        for other in [
            format!("{}{piece}{gap}{}", &text[..at], &text[at..]),
            format!("{}{gap}{}", &text[..at], &text[at..]),
            text[..at].to_owned(),
        ] {
            prop_assert_eq!(
                Compared::read(&text, &[]).hash == Compared::read(&other, &[]).hash,
                model::words(&text, &[]) == model::words(&other, &[]),
                "{:?} and {:?}", text, other
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Of a long text the model reads the two ends.
    #[test]
    fn long_texts_are_equal_where_the_model_s_ends_are(
        text in texts(), other in texts(), filler in select(PIECES), most in 1usize..4
    ) {
        let fill = |len: usize| format!("{filler} ").repeat(len / (filler.len() + 1));
        let ends = |text: &str| -> Vec<String> {
            let (head, tail) = ends(text);
            let words = |part| model::words(part, &[]).into_iter().map(str::to_owned);
            let len = (!tail.is_empty()).then(|| text.len().to_string());
            words(head).chain([String::new()]).chain(words(tail)).chain(len).collect()
        };
        let len = most * MAX_END;
        let texts = [
            format!("{text} {}", fill(len)),
            format!("{other} {}", fill(len)),
            format!("{}{text}", fill(len)),
            format!("{} {text}{}", fill(len / 2), fill(len / 2)),
            format!("{} {other}{}", fill(len / 2), fill(len / 2)),
        ];
        for (one, other) in texts.iter().zip(texts.iter().skip(1)) {
            prop_assert_eq!(
                Compared::read(one, &[]).hash == Compared::read(other, &[]).hash,
                ends(one) == ends(other)
            );
        }
    }
}

#[test]
fn each_character_joins_or_parts_words_as_the_model_says() {
    // The last white space is U+3000.
    let chars: Vec<char> = ('\0'..'\u{4000}').chain(('\u{4000}'..=char::MAX).step_by(61)).collect();
    for chars in chars.chunks(4096) {
        let text: String = chars.iter().map(|c| format!("a{c}b {c}ts 1{c} s\\{c}\n")).collect();
        assert_eq!(words(&text, &[]), model::words(&text, &[]), "{text:?}");
    }
}

/// What decides a word, in all short sequences of it.
#[test]
fn all_short_texts_have_the_model_s_words() {
    let letters = ["n", "s", "t", "1", "0", ":", "\\", "-", ".", " ", "é", "\u{a0}", "\""];
    let mut texts = vec![String::new()];
    for _ in 0..4 {
        texts = texts.iter().flat_map(|text| letters.map(|c| format!("{text}{c}"))).collect();
        for text in &texts {
            assert_eq!(words(text, &[]), model::words(text, &[]), "{text:?}");
        }
    }
}
