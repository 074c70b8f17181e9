//! Formats a JSON text over several lines without changing its values.

/// Puts each value of a JSON text on its own line, with numbers, escapes and the order of members
/// as written. Invalid JSON is formatted in some way, but nothing of it is lost.
pub(crate) fn pretty_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut is_open = false;
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let mut len = c.len_utf8();
        match c {
            '"' => {
                begin(&mut out, &mut is_open, depth);
                len = string(rest);
                out.push_str(&rest[..len]);
            }
            '{' | '[' => {
                begin(&mut out, &mut is_open, depth);
                out.push(c);
                depth += 1;
                is_open = true;
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !is_open {
                    line(&mut out, depth);
                }
                is_open = false;
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => {
                begin(&mut out, &mut is_open, depth);
                out.push(c);
            }
        }
        rest = &rest[len..];
    }
    out.push('\n');
    out
}

/// The first value after a bracket begins a line; empty brackets stay together.
fn begin(out: &mut String, is_open: &mut bool, depth: usize) {
    if std::mem::take(is_open) {
        line(out, depth);
    }
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// The length of the string that `text` begins with.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spread_as_they_are_written() {
        let json = r#"{ "b":1.0,"a" : ["x\"],{\\", -0 ,{}, [ ]],"ü":{"n":12345678901234567890}}"#;
        let expected = r#"{
  "b": 1.0,
  "a": [
    "x\"],{\\",
    -0,
    {},
    []
  ],
  "ü": {
    "n": 12345678901234567890
  }
}
"#;
        assert_eq!(pretty_json(json), expected);
    }

    #[test]
    fn what_is_no_json_loses_nothing_but_white_space() {
        for text in ["", "}}]", "{\"a", "plain text", "\"\\", "[1,,2"] {
            let dense = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(dense(&pretty_json(text)), dense(text), "{text}");
        }
    }
}
