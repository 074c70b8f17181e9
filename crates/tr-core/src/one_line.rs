//! JSON for streams in which a line break ends a message.
use std::borrow::Cow;

/// The JSON without its white space, if it has line breaks; names, strings and numbers stay as they are
/// written. It is for JSON: other text keeps what stands in quotes.
///
/// ```
/// assert_eq!(tr_core::one_line("{\r\n  \"a b\": [1.0,\n 2]\n}"), "{\"a b\":[1.0,2]}");
/// assert_eq!(tr_core::one_line("{ \"a\": 1 }"), "{ \"a\": 1 }");
/// ```
#[must_use]
pub fn one_line(json: &str) -> Cow<'_, str> {
    if !json.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return Cow::Borrowed(json);
    }
    let (mut quoted, mut escaped) = (false, false);
    let mut compact = String::with_capacity(json.len());
    compact.extend(json.chars().filter(|char| {
        let is_kept = quoted || !matches!(char, ' ' | '\t' | '\n' | '\r');
        if !std::mem::take(&mut escaped) {
            match char {
                '"' => quoted = !quoted,
                '\\' => escaped = quoted,
                _ => {}
            }
        }
        is_kept
    }));
    Cow::Owned(compact)
}

#[cfg(test)]
mod tests {
    use super::one_line;
    use serde_json::{Value, json};

    #[test]
    fn what_is_in_strings_stays() {
        for text in ["\\", "\"", "a \" b", "\\\" ", "  ", "\n", "\\\\\" \t"] {
            let value = json!({ text: [text, 1, { "a  b": null }] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let line = one_line(&pretty);
            assert_eq!(line, value.to_string());
            assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }

    #[test]
    fn numbers_and_doubled_names_stay_as_they_are_written() {
        assert_eq!(one_line("{\"a\" : 1.50E+2 ,\r\"a\":\t-0}"), "{\"a\":1.50E+2,\"a\":-0}");
    }
}
