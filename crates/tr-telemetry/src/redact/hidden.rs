//! What the fields of one call hold that its tool's manifest calls sensitive.
use super::{REDACTED, Redact, Redactor};
use serde_json::Value;
use std::borrow::Cow;

/// Names of sensitive fields, and what they held in a call.
#[derive(Debug)]
pub(crate) struct Hidden {
    redactor: Redactor,
    /// The longest first.
    values: Vec<String>,
}

/// Shorter values are hidden where they stand as words of their own.
const WORD: usize = 4;

impl Hidden {
    pub(crate) fn new(names: &[Box<str>], params: Option<&str>) -> Self {
        let mut hidden = Self { redactor: Redactor::default().hiding(names), values: Vec::new() };
        hidden.learn(params);
        hidden
    }

    /// Takes in what the sensitive fields of this JSON hold.
    pub(crate) fn learn(&mut self, json: Option<&str>) {
        let Some(json) = json.and_then(|json| serde_json::from_str(json).ok()) else { return };
        collect(&json, false, &self.redactor, &mut self.values);
        self.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.values.dedup();
    }

    /// Whether values under this name are sensitive.
    pub(crate) fn hides(&self, name: &str) -> bool {
        self.redactor.hides(name)
    }

    /// `text` without these values, whatever stands around them.
    pub(crate) fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        for value in &self.values {
            if clean.contains(value.as_str()) {
                clean = Cow::Owned(without(&clean, value));
            }
        }
        match self.redactor.redact(&clean) {
            Cow::Borrowed(_) => clean,
            Cow::Owned(cleaner) => Cow::Owned(cleaner),
        }
    }
}

/// All that stands under a sensitive name, however deep.
fn collect(json: &Value, is_hidden: bool, redactor: &Redactor, values: &mut Vec<String>) {
    match json {
        Value::Object(members) => {
            for (name, value) in members {
                collect(value, is_hidden || redactor.hides(name), redactor, values);
            }
        }
        Value::Array(elements) => {
            elements.iter().for_each(|element| collect(element, is_hidden, redactor, values));
        }
        Value::String(text) if is_hidden && !text.trim().is_empty() => {
            let written = json.to_string();
            let written = &written[1..written.len() - 1];
            if written != text {
                values.push(written.to_owned());
            }
            if text.trim() != text {
                values.push(text.trim().to_owned());
            }
            values.push(text.clone());
        }
        Value::Number(number) if is_hidden => values.push(number.to_string()),
        _ => {}
    }
}

fn without(text: &str, value: &str) -> String {
    let in_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let (mut clean, mut done) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(value) {
        let end = at + value.len();
        let is_word =
            !in_word(text[..at].chars().next_back()) && !in_word(text[end..].chars().next());
        if value.len() >= WORD || is_word {
            clean.push_str(&text[done..at]);
            clean.push_str(REDACTED);
            done = end;
        }
    }
    clean.push_str(&text[done..]);
    clean
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
}
