//! The secrets that the guard itself was given: no log and no error of its own shows them.
//!
//! Telemetry takes out what looks like a secret; these are known, so they are taken out whatever they look like.
use crate::files::read_secret;
use anyhow::{Context as _, anyhow};
use std::{
    borrow::Cow,
    io,
    path::Path,
    sync::{PoisonError, RwLock},
};
use tr_core::canonical::Digest;

/// What stands in their places, as in telemetry.
const REDACTED: &str = "[redacted]";
/// Shorter values stand in too many other words.
const SHORTEST: usize = 8;

static KNOWN: RwLock<Vec<Box<str>>> = RwLock::new(Vec::new());

/// Remembers a secret: the value of a header, a token or a key. Of `Bearer …` the word after it is one, too.
pub(crate) fn keep(value: &str) {
    let value = value.trim();
    let credential = value.rsplit(' ').next().unwrap_or_default();
    for text in [value, credential] {
        // As it stands in a line of JSON.
        let quoted = serde_json::Value::from(text).to_string();
        for form in [text, &quoted[1..quoted.len() - 1]] {
            let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
            if form.len() >= SHORTEST && !known.iter().any(|one| **one == *form) {
                known.push(form.into());
                // The longest first: another may be a part of it.
                known.sort_by_key(|one| std::cmp::Reverse(one.len()));
            }
        }
    }
}

/// The text without them.
pub(crate) fn without(text: &str) -> Cow<'_, str> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().fold(Cow::Borrowed(text), |text, one| match text.contains(&**one) {
        true => text.replace(&**one, REDACTED).into(),
        false => text,
    })
}

/// A log, which is written line by line.
#[derive(Debug)]
pub(crate) struct Without<W>(pub(crate) W);

impl<W: io::Write> io::Write for Without<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match str::from_utf8(line).map(without) {
            Ok(Cow::Owned(clean)) => self.0.write_all(clean.as_bytes())?,
            _ => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether a word, or a part of a path, looks made by chance: letters and digits in a row, or a UUID.
pub(crate) fn is_like_one(part: &str) -> bool {
    let is_mixed = |text: &str| {
        text.bytes().any(|byte| byte.is_ascii_digit())
            && text.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let mut rows = part.split(|byte: char| !byte.is_ascii_alphanumeric());
    let hex = part.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    rows.any(|row| row.len() >= 16 && is_mixed(row)) || is_hex && hex >= 16
}

/// A secret: 64 hexadecimal digits in a file that only its user can read.
pub(crate) fn secret_in(file: &Path) -> anyhow::Result<[u8; 32]> {
    let key = read_secret(file).and_then(|text| key(&text));
    key.with_context(|| format!("the file {} cannot be used", file.display()))
}

/// A secret: 64 hexadecimal digits.
pub(crate) fn key(text: &str) -> anyhow::Result<[u8; 32]> {
    keep(text);
    let digest: Digest = text.trim().parse().map_err(|_| {
        anyhow!("expected 64 hexadecimal digits, such as those of: openssl rand -hex 32")
    })?;
    Ok(*digest.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn what_the_guard_was_given_is_in_no_line() {
        keep("Bearer hunter2hunter2");
        keep("pa\"ss\\word");
        keep("short");
        let mut log = Without(Vec::new());
        log.write_all(
            b"{\"error\":\"hunter2hunter2 and Bearer hunter2hunter2, pa\\\"ss\\\\word, short\"}\n",
        )
        .unwrap();
        let log = String::from_utf8(log.0).unwrap();
        let wanted = format!("{{\"error\":\"{REDACTED} and {REDACTED}, {REDACTED}, short\"}}\n");
        assert_eq!(log, wanted);
        assert_eq!(without("pa\"ss\\word"), REDACTED);
    }
}
