//! The words of a message.

/// The most words that `..` stands for.
const GAP: usize = 6;

/// A word and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    /// Where its first byte is.
    pub(super) start: usize,
    /// What stands between the word before and this one.
    pub(super) gap: &'t str,
}

/// ASCII letters, digits and `_`, and an apostrophe between letters. Lines of stack traces are
/// left out: they name functions, not failures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'t> {
    text: &'t str,
    at: usize,
    underscores_part: bool,
}

impl<'t> Words<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0, underscores_part: false }
    }

    /// The words of a code: `RATE_LIMIT` is two.
    pub(super) const fn of_code(text: &'t str) -> Self {
        Self { text, at: 0, underscores_part: true }
    }

    const fn is_letter(&self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || (byte == b'_' && !self.underscores_part)
    }

    /// What follows the words that were taken.
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }
}

impl<'t> Iterator for Words<'t> {
    type Item = Word<'t>;

    fn next(&mut self) -> Option<Word<'t>> {
        let bytes = self.text.as_bytes();
        let before = self.at;
        let mut start = before;
        loop {
            let byte = *bytes.get(start)?;
            if self.is_letter(byte) {
                break;
            }
            start += 1;
            if byte == b'\n' {
                start += frames(&self.text[start..]);
            }
        }
        let mut end = start + 1;
        while let Some(byte) = bytes.get(end) {
            let inside = self.is_letter(*byte)
                || (*byte == b'\'' && bytes.get(end + 1).is_some_and(u8::is_ascii_alphabetic));
            if !inside {
                break;
            }
            end += 1;
        }
        self.at = end;
        Some(Word { text: &self.text[start..end], start, gap: &self.text[before..start] })
    }
}

/// Whether `words` go on with `rest`.
pub(super) fn follows(rest: &str, mut words: Words<'_>) -> bool {
    let mut wanted = rest.split_ascii_whitespace();
    while let Some(want) = wanted.next() {
        let many = if want == ".." { GAP + 1 } else { 1 };
        let want = if want == ".." { wanted.next().unwrap_or("") } else { want };
        let is_wanted = |word: Word<'_>| word.text.eq_ignore_ascii_case(want);
        if !words.by_ref().take(many).any(is_wanted) {
            return false;
        }
    }
    true
}

/// How many bytes of stack frames `text` begins with.
fn frames(text: &str) -> usize {
    let mut skipped = 0;
    for line in text.split_inclusive('\n') {
        let frame = line.trim_ascii_start();
        if !(frame.starts_with("at ") && frame.len() < line.len()) {
            break;
        }
        skipped += line.len();
    }
    skipped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        Words::new(text).map(|word| word.text).collect()
    }

    #[test]
    fn splits_at_all_but_letters_digits_and_underscores() {
        assert_eq!(words("rate-limit: `x_y` (429)"), ["rate", "limit", "x_y", "429"]);
        assert_eq!(words("doesn't 'path'"), ["doesn't", "path"]);
        assert_eq!(words("Größe ist 500"), ["Gr", "e", "ist", "500"]);
        assert_eq!(words("…"), [""; 0]);
    }

    #[test]
    fn leaves_stack_frames_out() {
        let trace = "Error: boom\n    at listOnTimeout (node:internal/timers:573:17)\n    at Timeout._onTimeout (x.js:1:1)\ndone";
        assert_eq!(words(trace), ["Error", "boom", "done"]);
    }
}
