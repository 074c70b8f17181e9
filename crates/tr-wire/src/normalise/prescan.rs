//! A cheap check before a text is parsed: may it hide a failure or an envelope? One pass, without allocation.

/// Whether a text that begins an object may report a failure, or be an envelope. `false` is
/// certain, unless a name of a member is spelled with escapes.
pub(super) fn is_suspicious(object: &str) -> bool {
    let mut signs = Signs::default();
    let mut rest = Scanner { text: object.as_bytes(), at: 1 };
    while let Some((name, value)) = rest.member() {
        signs.member(name, value);
    }
    signs.is_suspicious()
}

/// What the members say, each by itself.
#[derive(Default)]
struct Signs {
    is_ok: bool,
    is_not_ok: bool,
    exits_well: bool,
    exits_badly: bool,
    has_error: bool,
    request_id: bool,
    status: bool,
}

impl Signs {
    fn member(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"ok" => match value {
                b"false" => self.is_not_ok = true,
                b"true" => self.is_ok = true,
                _ => {}
            },
            b"exitCode" | b"exit_code" | b"returncode" => match value {
                b"0" => self.exits_well = true,
                [b'-' | b'0'..=b'9', ..] => self.exits_badly = true,
                _ => {}
            },
            b"error" => {
                let says_none = [&b"null"[..], b"false", b"\"\"", b"{}", b"[]", b"0"];
                self.has_error |= !says_none.contains(&value);
            }
            b"requestId" => self.request_id = true,
            b"status" => self.status = true,
            _ => {}
        }
    }

    const fn is_suspicious(&self) -> bool {
        let errs = self.has_error && !self.is_ok && !self.exits_well;
        self.is_not_ok || self.exits_badly || errs || (self.request_id && self.status)
    }
}

/// Walks over the members of an object that is known to be valid JSON.
struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Scanner<'t> {
    /// The next member's name and value, as they are written.
    fn member(&mut self) -> Option<(&'t [u8], &'t [u8])> {
        self.skip(|byte| byte != b'"')?;
        let name = self.string()?;
        self.skip(|byte| byte == b':' || byte.is_ascii_whitespace())?;
        Some((name, self.value()?))
    }

    fn skip(&mut self, is_between: impl Fn(u8) -> bool) -> Option<()> {
        let skipped = self.text.get(self.at..)?.iter().position(|byte| !is_between(*byte))?;
        self.at += skipped;
        Some(())
    }

    /// The inside of the string that begins here.
    fn string(&mut self) -> Option<&'t [u8]> {
        let from = self.at + 1;
        self.at = from;
        loop {
            self.skip(|byte| byte != b'"' && byte != b'\\')?;
            if self.text[self.at] == b'"' {
                self.at += 1;
                return Some(&self.text[from..self.at - 1]);
            }
            self.at += 2;
        }
    }

    /// The value that begins here.
    fn value(&mut self) -> Option<&'t [u8]> {
        let from = self.at;
        let mut depth = 0_usize;
        loop {
            match self.text.get(self.at)? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b'}' | b',' if depth == 0 => break,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            if depth == 0 {
                break;
            }
        }
        Some(self.text[from..self.at].trim_ascii_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_report_a_failure_is_looked_at_again() {
        for (object, suspicious) in [
            (r#"{"ok":true,"error":"none"}"#, false),
            (r#"{ "exitCode" : 0 , "stderr" : "\"ok\":false" }"#, false),
            (r#"{"data":{"ok":false,"error":"x"},"list":[{"exitCode":1}]}"#, false),
            (r#"{"error":null}"#, false),
            (r#"{"error":"","a":[]}"#, false),
            (r#"{"error":{}}"#, false),
            (r#"{"error":[],"rows":[1]}"#, false),
            (r#"{"error":0}"#, false),
            (r#"{"requestId":"aws-1","data":1}"#, false),
            (r#"{"a\"":"}","b\\":"\\"}"#, false),
            ("{}", false),
            (r#"{"ok":false}"#, true),
            (r#"{"a":"}\\","ok" : false }"#, true),
            (r#"{"list":[1,[2]],"returncode":-9}"#, true),
            (r#"{"exit_code":0.5}"#, true),
            (r#"{"error":"boom"}"#, true),
            (r#"{"error":{"code":1}}"#, true),
            (r#"{"error":["boom"]}"#, true),
            (r#"{"error":5}"#, true),
            (r#"{"status":"error","requestId":"r"}"#, true),
        ] {
            assert_eq!(is_suspicious(object), suspicious, "{object}");
        }
    }

    #[test]
    fn whatever_the_text_the_walk_ends() {
        let whole = r#"{"a":"\\\"","b":[{"c":[]},"]"],"ok":false,"d":1e5}"#;
        for end in 1..=whole.len() {
            is_suspicious(&whole[..end]);
        }
        assert!(is_suspicious(whole));
    }
}
