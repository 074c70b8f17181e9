//! Well-known forms of secrets.
use std::ops::Range;

/// A form of secret: an anchor that every one of them holds, and the rest of its form.
pub(super) struct Rule {
    pub(super) anchor: &'static str,
    pub(super) form: fn(&str, Range<usize>) -> Option<Range<usize>>,
}

macro_rules! prefixes {
    ($($anchor:literal $class:ident $least:literal,)*) => {
        &[
            $(Rule { anchor: $anchor, form: |text, at| prefixed(text, at, $anchor, $class, $least) },)*
            Rule { anchor: "eyj", form: json_web_token },
            Rule { anchor: "-----begin ", form: private_key },
            Rule { anchor: "bearer ", form: credentials },
            Rule { anchor: "basic ", form: credentials },
            Rule { anchor: "://", form: user_of_url },
            Rule { anchor: "hooks.slack.com/services/", form: after_anchor },
        ]
    };
}

/// Prefix, the characters that follow it, and how many at least.
pub(super) static RULES: &[Rule] = prefixes! {
    "AKIA" UPPER 16, "ASIA" UPPER 16, "ABIA" UPPER 16, "ACCA" UPPER 16,
    "ghp_" WORD 30, "gho_" WORD 30, "ghu_" WORD 30, "ghs_" WORD 30, "ghr_" WORD 30,
    "github_pat_" WORD 22, "glpat-" DASHED 16, "gldt-" DASHED 16,
    "xoxb-" DASHED 10, "xoxp-" DASHED 10, "xoxa-" DASHED 10, "xoxr-" DASHED 10, "xoxs-" DASHED 10,
    "xapp-" DASHED 10, "xoxe-" DASHED 10,
    "sk-" DASHED 16, "sk_live_" WORD 10, "sk_test_" WORD 10, "rk_live_" WORD 10,
    "rk_test_" WORD 10, "whsec_" WORD 16,
    "AIza" DASHED 30, "ya29." DASHED 20, "GOCSPX-" DASHED 20,
    "npm_" WORD 30, "pypi-" DASHED 50, "hf_" WORD 20, "dop_v1_" WORD 40, "shpat_" WORD 30,
    "SG." DOTTED 40, "glsa_" WORD 30, "lin_api_" WORD 30, "hvs." DASHED 20, "r8_" WORD 30,
    "tvly-" DASHED 16, "gsk_" WORD 30, "pplx-" DASHED 30, "fw_" WORD 20, "AGE-SECRET-KEY-1" UPPER 40,
};

type Class = fn(u8) -> bool;

const UPPER: Class = |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit();
const WORD: Class = |byte| byte.is_ascii_alphanumeric() || byte == b'_';
const DASHED: Class = |byte| WORD(byte) || byte == b'-';
const DOTTED: Class = |byte| DASHED(byte) || byte == b'.';
const BASE64: Class = |byte| DOTTED(byte) || b"~+/=".contains(&byte);

fn run(text: &str, from: usize, class: Class) -> usize {
    text.as_bytes()[from..].iter().take_while(|byte| class(**byte)).count()
}

fn prefixed(
    text: &str,
    at: Range<usize>,
    prefix: &str,
    class: Class,
    least: usize,
) -> Option<Range<usize>> {
    // `sk-` is also the end of `task-`.
    let begins = at.start == 0 || !text.as_bytes()[at.start - 1].is_ascii_alphanumeric();
    let body = run(text, at.end, class);
    let is_it = begins && text[at.clone()] == *prefix && body >= least;
    is_it.then(|| at.start..at.end + body)
}

fn json_web_token(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let end = at.end + run(text, at.end, DOTTED);
    let token = &text[at.start..end];
    let is_it = token.starts_with("eyJ") && token.len() >= 24 && token.contains('.');
    is_it.then_some(at.start..end)
}

/// To the end of the block, or of the text if the block is cut off.
fn private_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let rest = &text[at.end..];
    let head = rest.find("-----").map(|end| &rest[..end])?;
    if !head.to_ascii_uppercase().contains("PRIVATE KEY") {
        return None;
    }
    let body = head.len() + 5;
    let end = rest[body..].find("-----END").map(|end| body + end + 8);
    let end = end.and_then(|end| Some(end + rest[end..].find("-----")? + 5));
    Some(at.start..end.map_or(text.len(), |end| at.end + end))
}

/// The word after an authentication scheme, unless it is a plain word of a sentence.
fn credentials(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let end = at.end + run(text, at.end, BASE64);
    let word = text[at.end..end].trim_end_matches('.');
    let is_plain = word.bytes().all(|byte| byte.is_ascii_lowercase());
    (word.len() >= 8 && !is_plain).then(|| at.end..at.end + word.len())
}

/// User and password before the host.
fn user_of_url(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let rest = &text.as_bytes()[at.end..];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'<>".contains(byte);
    let authority = rest.iter().position(ends).unwrap_or(rest.len());
    let user = rest[..authority].iter().rposition(|byte| *byte == b'@')?;
    let is_hidden = text[at.end..at.end + user] == *super::REDACTED;
    (user > 0 && !is_hidden).then(|| at.end..at.end + user)
}

fn after_anchor(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let body = run(text, at.end, |byte| BASE64(byte) && byte != b'.');
    (body > 0).then(|| at.end..at.end + body)
}
