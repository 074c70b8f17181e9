//! Collects the values of one call's sensitive fields, as its tool's manifest names them, and removes them from texts.
use super::{REDACTED, Redact, Redactor};
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeSet, ops::Range, sync::OnceLock};
use tr_core::{
    Sensitive,
    chunks::{Chunks, TooLong},
    debug_parts,
    internal::members,
};

/// The secret values of one call: the values of its tool's sensitive fields.
///
/// ```
/// use tr_telemetry::redact::Hidden;
///
/// let mut hidden = Hidden::new(&["passport_no".into()], Some(r#"{"passportNo": "X17"}"#));
/// assert_eq!(hidden.clean("no visa for X17"), "no visa for [redacted]");
/// ```
///
/// The time that [`clean`](Self::clean) takes does not grow with the number of values. Where they are too many to
/// be searched for (1,000, or 64 KiB, or 32 of more than 256 bytes), nothing of a text is shown.
pub struct Hidden {
    redactor: Redactor,
    values: Values,
}

/// The values of one call's sensitive fields.
#[derive(Default)]
struct Values {
    short: BTreeSet<String>,
    /// How many bytes these have.
    bytes: usize,
    /// Searched for one by one.
    long: BTreeSet<String>,
    /// There were more than are kept.
    is_over: bool,
    /// Searches for all short ones, from the first text on.
    search: OnceLock<Option<AhoCorasick>>,
}

/// Shorter values are hidden where they stand as words of their own.
const WORD: usize = 4;

/// The most values that are searched for at once, and the most bytes of them.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 64 * 1_024;

/// Values of more bytes than this are searched for one by one; the most of them.
const LONG: usize = 256;
const MOST_LONG: usize = 32;

/// JSON that is nested deeper is not searched.
const DEEPEST: usize = 128;

impl Hidden {
    /// What these params hold under these names, in any case style and at any depth.
    #[must_use]
    pub fn new(names: &[Box<str>], params: Option<&str>) -> Self {
        let redactor = Redactor::default().hiding(names);
        let mut hidden = Self { redactor, values: Values::default() };
        hidden.learn(params);
        hidden
    }

    /// What must not be shown of a call; `None` if its tool has no sensitive fields.
    #[must_use]
    pub fn of(sensitive: Option<Sensitive<'_>>) -> Option<Self> {
        sensitive.map(|it| Self::new(it.names, Some(it.params)))
    }

    /// Adds the values of the sensitive fields of this JSON, such as a result.
    pub fn learn(&mut self, json: Option<&str>) {
        let Some(json) = json.and_then(|json| serde_json::from_str::<&RawValue>(json).ok()) else {
            return;
        };
        self.values.search = OnceLock::new();
        collect(json.get(), false, DEEPEST, &self.redactor, &mut self.values);
    }

    /// Adds the values of a streamed answer, which a later failure may quote. Chunks of text are read together,
    /// since a value may begin in one and end in another.
    pub(crate) fn learn_stream(&mut self, chunks: &Chunks) {
        match chunks.so_far() {
            None => {}
            Some(Err(TooLong)) => self.values.is_over = true,
            Some(Ok(answer)) => {
                self.learn(Some(answer.get()));
                if let Ok(text) = answer.parse::<String>() {
                    self.learn_lines(&text);
                }
            }
        }
    }

    /// Adds the values of each JSON text in a sequence of them. If one is no JSON, what is sensitive in it is not
    /// known, so nothing is shown.
    fn learn_lines(&mut self, text: &str) {
        for json in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
            match json {
                Ok(json) => self.learn(Some(json.get())),
                Err(_) => {
                    self.values.is_over = true;
                    return;
                }
            }
        }
    }

    /// Whether values under this name are sensitive.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        self.redactor.hides(name)
    }

    /// `text` without these values, whatever stands around them.
    #[must_use]
    pub fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.values.is_over && !text.is_empty() {
            return Cow::Borrowed(REDACTED);
        }
        let clean = self.values.taken_out_of(text);
        match self.redactor.redact(&clean) {
            Cow::Borrowed(_) => clean,
            Cow::Owned(cleaner) => Cow::Owned(cleaner),
        }
    }
}

// Never shows the values.
debug_parts! { Hidden, |it| values = it.values.short.len() + it.values.long.len() }

/// Adds every string and number under a sensitive name, at any depth, in the spellings that an error may quote.
fn collect(json: &str, is_hidden: bool, depth: usize, redactor: &Redactor, values: &mut Values) {
    if values.is_over {
        return;
    }
    match json.as_bytes().first() {
        Some(b'{') if depth > 0 => {
            for (name, value) in members(json).unwrap_or_default() {
                let is_hidden = is_hidden || redactor.hides(&name);
                collect(value.get(), is_hidden, depth - 1, redactor, values);
            }
        }
        Some(b'[') if depth > 0 => {
            let elements: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            for element in elements {
                collect(element.get(), is_hidden, depth - 1, redactor, values);
            }
        }
        Some(b'"') if is_hidden => string(json, values),
        Some(b'-' | b'0'..=b'9') if is_hidden => number(json, values),
        _ => {}
    }
}

/// Adds a string as it is written in the JSON, as serde writes it, trimmed, and in full.
fn string(json: &str, values: &mut Values) {
    let written = &json[1..json.len() - 1];
    let text: String = serde_json::from_str(json).unwrap_or_default();
    let again = serde_json::Value::from(&*text).to_string();
    let all = [written, &again[1..again.len() - 1], text.trim(), &text];
    all.into_iter().filter(|text| !text.trim().is_empty()).for_each(|text| values.add(text));
}

/// Adds a number as it is written, and as programs print it that read it as a double.
fn number(json: &str, values: &mut Values) {
    values.add(json);
    if let Ok(double) = json.parse::<f64>() {
        let scientific = format!("{double:e}");
        values.add(&scientific.replace('e', "e+"));
        [format!("{double}"), format!("{double:?}"), scientific]
            .iter()
            .for_each(|text| values.add(text));
    }
}

impl Values {
    fn add(&mut self, value: &str) {
        let is_long = value.len() > LONG;
        let known = if is_long { &mut self.long } else { &mut self.short };
        if self.is_over || known.contains(value) {
            return;
        }
        known.insert(value.to_owned());
        self.bytes += if is_long { 0 } else { value.len() };
        if self.short.len() > MOST || self.bytes > MOST_BYTES || self.long.len() > MOST_LONG {
            *self = Self { is_over: true, ..Self::default() };
        }
    }

    /// `text` without any of these, whatever stands around them.
    fn taken_out_of<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = self.found_in(text);
        for value in self.long.iter().filter(|value| value.len() <= text.len()) {
            found.extend(text.match_indices(value.as_str()).map(|(at, _)| at..at + value.len()));
        }
        found.sort_unstable_by_key(|value| (value.start, value.end));
        super::blotted(text, found)
    }

    /// Where the short values occur; of overlapping occurrences, the outermost.
    fn found_in(&self, text: &str) -> Vec<Range<usize>> {
        let search = self.search.get_or_init(|| {
            let mut search = AhoCorasick::builder();
            search.kind(Some(AhoCorasickKind::ContiguousNFA));
            (!self.short.is_empty()).then(|| search.build(&self.short).expect("few short patterns"))
        });
        let Some(search) = search else { return Vec::new() };
        let mut found: Vec<Range<usize>> = Vec::new();
        for value in search.find_overlapping_iter(text).map(|value| value.range()) {
            if value.len() < WORD && !is_word(text, &value) {
                continue;
            }
            // Matches are ordered by their ends: this one covers earlier ones that begin at or after its start.
            while found.last().is_some_and(|last| last.start >= value.start) {
                found.pop();
            }
            if found.last().is_none_or(|last| last.end < value.end) {
                found.push(value);
            }
        }
        found
    }
}

fn is_word(text: &str, value: &Range<usize>) -> bool {
    let in_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    !in_word(text[..value.start].chars().next_back()) && !in_word(text[value.end..].chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_sensitive_fields_go_wherever_they_stand() {
        let names = ["passportNo".into(), "pin".into()];
        let params =
            r#"{"who": {"passport_no": "X\"17", "seat": "3A"}, "pin": [12, "0 0"], "to": "LIS"}"#;
        let mut hidden = Hidden::new(&names, Some(params));
        for (text, clean) in [
            (r#"no booking for X"17 in 3A"#, "no booking for [redacted] in 3A"),
            (r#"{"X\"17": 12, "at": 123}"#, r#"{"[redacted]": [redacted], "at": 123}"#),
            ("passport-no: Y9", "passport-no: [redacted]"),
            ("to LIS", "to LIS"),
        ] {
            assert_eq!(hidden.clean(text), clean);
        }
        hidden.learn(Some(r#"{"pin": "4711"}"#));
        assert_eq!(hidden.clean("wrong4711!"), "wrong[redacted]!");
    }

    #[test]
    fn numbers_go_as_they_are_written_and_as_doubles_are() {
        let params = r#"{"id": [123456789012345678901234, 40.7500, 1e3, -0.00000012, 7.0]}"#;
        let hidden = Hidden::new(&["id".into()], Some(params));
        for quoted in [
            "123456789012345678901234",
            "1.2345678901234569e23",
            "1.2345678901234569e+23",
            "40.7500",
            "40.75",
            "1e3",
            "1000",
            "1000.0",
            "-0.00000012",
            "-1.2e-7",
            "7.0",
        ] {
            assert_eq!(
                hidden.clean(&format!("no {quoted} here")),
                "no [redacted] here",
                "{quoted}"
            );
        }
        assert_eq!(hidden.clean("70 and 1234"), "70 and 1234");
        assert!(!format!("{hidden:?}").contains("40.75"));
    }

    /// Values of any form, and what is left of a text that holds them in any order.
    #[test]
    fn values_that_overlap_all_go() {
        let hide = |values: &[&str]| {
            let params = serde_json::json!({ "pin": values }).to_string();
            Hidden::new(&["pin".into()], Some(&params))
        };
        for (values, text, clean) in [
            (&["abcd", "bcdefgh"][..], "x abcdefgh y", "x [redacted] y"),
            (&["abcdef", "cd", "cdef"], "abcdef cd abcd", "[redacted] [redacted] abcd"),
            (&["first1"], "first1first1", "[redacted][redacted]"),
            (&["aaaa"], "aaaaaaa", "[redacted]"),
            (&["äöü"], "Äöü äöü", "Äöü [redacted]"),
        ] {
            assert_eq!(hide(values).clean(text), clean, "{values:?}");
        }
        let long = "long ".repeat(100);
        assert_eq!(hide(&[long.as_str(), "ong lo"]).clean(&format!("a {long}.")), "a [redacted].");
    }

    /// Past the bounds nothing of a text is shown, and no search is made for what cannot be there.
    #[test]
    fn values_are_bounded() {
        let hide = |values: Vec<String>| {
            let params = serde_json::json!({ "pin": values }).to_string();
            Hidden::new(&["pin".into()], Some(&params))
        };
        let few = hide((0..MOST).map(|n| format!("value{n:04}")).collect());
        let text = "no value0999 here".repeat(1_000);
        assert_eq!(few.clean(&text), text.replace("value0999", REDACTED));
        for many in [
            (0..=MOST).map(|n| format!("value{n:04}")).collect::<Vec<_>>(),
            (0..=MOST_LONG).map(|n| format!("{n}").repeat(LONG + 1)).collect(),
            (0..=MOST_BYTES / LONG).map(|n| format!("{n:0LONG$}")).collect(),
        ] {
            let hidden = hide(many);
            assert_eq!(hidden.clean("value0001 and more"), REDACTED);
            assert_eq!(hidden.clean(""), "");
            assert!(hidden.values.short.is_empty() && hidden.values.long.is_empty());
        }
        let nested = hide((1..=LONG).map(|n| "a".repeat(n)).collect());
        assert_eq!(nested.clean(&"a".repeat(10_000)), REDACTED);
    }

    #[test]
    fn members_of_one_name_all_go_and_depth_is_bounded() {
        let twice = Hidden::new(&["pin".into()], Some(r#"{"pin": "first1", "pin": "second2"}"#));
        assert_eq!(twice.clean("first1 second2"), "[redacted] [redacted]");
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let _ = Hidden::new(&["pin".into()], Some(&format!(r#"{{"pin": {deep}}}"#)));
    }
}
