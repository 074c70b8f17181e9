//! The header `Idempotency-Key`.
use http::HeaderMap;

/// The most characters of a key, as Stripe has it.
const LONGEST: usize = 255;

/// Reads the key: a string of structured fields, as the IETF draft asks for, or a bare one.
///
/// # Errors
/// If there are several keys, or one that is neither; the text says which.
pub(super) fn read(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let mut lines = headers.get_all("idempotency-key").iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err("the request has several idempotency keys: send one");
    }
    let text = line.to_str().map_err(|_| "the idempotency key has characters beyond ASCII")?;
    let text = text.trim_matches([' ', '\t']);
    let key = match text.strip_prefix('"') {
        Some(quoted) => string(quoted).ok_or(
            "the idempotency key begins with a quote and is no string of RFC 9651: write \"…\"",
        )?,
        None if text.contains(['"', ',', ' ', '\t']) => {
            return Err("the idempotency key has a quote, a comma or a space: write it as \"…\"");
        }
        None => text.to_owned(),
    };
    match key.len() {
        0 => Err("the idempotency key is empty"),
        1..=LONGEST => Ok(Some(key)),
        _ => Err("the idempotency key is longer than 255 characters"),
    }
}

/// A structured field's string, after its first quote. Parameters behind it say nothing to us; a comma
/// begins the next member of a list.
fn string(quoted: &str) -> Option<String> {
    let mut key = String::new();
    let mut left = quoted.chars();
    loop {
        match left.next()? {
            '"' => break,
            '\\' => key.push(left.next().filter(|next| matches!(next, '"' | '\\'))?),
            '\t' => return None,
            plain => key.push(plain),
        }
    }
    let behind = left.as_str();
    (behind.is_empty() || behind.starts_with(';') && !behind.contains(',')).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lines: &[&str]) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("idempotency-key", line.parse().unwrap());
        }
        read(&headers)
    }

    #[test]
    fn a_key_is_a_string_or_bare() {
        let read = |line: &str| keys(&[line]).unwrap().unwrap();
        assert_eq!(keys(&[]), Ok(None));
        assert_eq!(read(r#""8e03978e-40d5""#), "8e03978e-40d5");
        assert_eq!(read("8e03978e-40d5"), "8e03978e-40d5");
        assert_eq!(read("stripe-node-retry-1"), "stripe-node-retry-1");
        assert_eq!(read("  a/b+c==  "), "a/b+c==");
        assert_eq!(read(r#""a b, \"c\" \\""#), r#"a b, "c" \"#);
        assert_eq!(read(r#""k";v=1"#), "k");
        assert_eq!(read(&"k".repeat(255)).len(), 255);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for line in [
            "",
            " ",
            r#""""#,
            r#"""#,
            r#""a"#,
            r#""a"b"#,
            r#""a\x""#,
            "\"a\tb\"",
            "a, b",
            "a b",
            "a\"",
            "é",
            r#""k";v=1, "j""#,
        ] {
            assert!(keys(&[line]).is_err(), "{line:?}");
        }
        assert!(keys(&["a", "a"]).is_err());
        assert!(keys(&[&"k".repeat(256)]).is_err());
    }
}
