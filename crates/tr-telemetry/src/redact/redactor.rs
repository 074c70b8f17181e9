//! The usual redactor: one pass over a text by its anchors.
//!
//! Whatever an anchor makes us look at is either short, or skipped afterwards, or remembered: the
//! time is linear in the text's length. Names are looked at once, however many anchors they hold.
use super::{
    Redact, entropy,
    forms::FORMS,
    names, parts,
    tokens::{self, DOTTED, PREFIXES, run},
};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use std::{borrow::Cow, ops::Range, sync::LazyLock};
use tr_core::internal::ceil_char_boundary;

/// The usual redactor: values under sensitive names, and well-known forms of secrets.
///
/// - Names in any case style (`api_key`, `apiKey`, `X-API-KEY`), followed by `:` or `=`: passwords,
///   tokens, keys, credentials, cookies, and the names that were added. Under names that have other
///   values too (`key`, `session`, `sig`), what looks drawn at random; in a URL, all of `?key=` and
///   `&sig=`.
///   A word or a status behind `token:`, `auth:` and their like stays (`token: expired`, `Auth: 401`,
///   `Unexpected token: '}'`), and a word behind `pin:` and `otp:`.
/// - `passwd x`, `password is x`, `curl -u user:x` and `mysql -px`, where `x` is no plain word.
/// - Tokens of more than a hundred platforms by their prefixes or the lengths of their parts, JSON
///   web tokens, private keys with and without the lines around them, hashes of passwords, bearer
///   and basic credentials, the user part of URLs, the path of webhooks.
/// - With [`by_entropy`](Self::by_entropy), long words that look drawn at random.
///
/// The time it takes grows with the text's length alone, whatever the text is.
///
/// ```
/// use tr_telemetry::redact::{Redact, Redactor};
///
/// let redactor = Redactor::default().hiding(["diagnosis"]);
/// assert_eq!(redactor.redact("login failed: apiKey=k-123, retry"), "login failed: apiKey=[redacted], retry");
/// assert_eq!(redactor.redact(r#"{"patientDiagnosis": "flu"}"#), r#"{"patientDiagnosis": "[redacted]"}"#);
/// assert_eq!(redactor.redact("nothing to hide"), "nothing to hide");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    extra: Vec<Box<str>>,
    /// How the extra names begin; `None` without any.
    heads: Option<AhoCorasick>,
    by_entropy: bool,
}

impl Redactor {
    /// Hides values under these names as well, in any case style, and under names that hold them
    /// as words.
    #[must_use]
    pub fn hiding<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let words = |name: N| names::words(name.as_ref()).collect::<Vec<_>>().concat();
        self.extra
            .extend(names.into_iter().map(words).filter(|name| !name.is_empty()).map(Into::into));
        // A name's first word is its anchor, since its words may be joined in any style.
        let heads: Vec<&str> = self.extra.iter().map(|name| names::head(name)).collect();
        self.heads = (!heads.is_empty()).then(|| search(heads));
        self
    }

    /// Hides words of 24 letters and more (hexadecimal digits: 32) that look drawn at random too,
    /// whatever stands around them. Off by default: it hides hashes of commits and images as well;
    /// `docs/telemetry.md` says how much of clean text that is, and what it costs.
    ///
    /// ```
    /// use tr_telemetry::redact::{Redact, Redactor};
    ///
    /// let redactor = Redactor::default().by_entropy();
    /// assert_eq!(redactor.redact("used Zk8Qw2Lr9Xv4Nb7Tc1Hs6Jd3 twice"), "used [redacted] twice");
    /// assert_eq!(redactor.redact("at 3f786850e387550fdab836ed7e6dc881de23001b"), "at [redacted]");
    /// ```
    #[must_use]
    pub const fn by_entropy(mut self) -> Self {
        self.by_entropy = true;
        self
    }

    /// Whether values under `name` are hidden.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        names::is_sensitive(name, &self.extra)
    }

    /// Where secrets stand, by their start; they may overlap.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let mut secrets = Scan::new(text, &self.extra).by(&USUAL, Scan::secret_at);
        secrets.extend(parts::find(text));
        if let Some(heads) = &self.heads {
            let named = |scan: &mut Scan<'_>, _, anchor| scan.named(anchor);
            secrets.append(&mut Scan::new(text, &self.extra).by(heads, named));
        }
        if self.by_entropy {
            secrets.extend(entropy::find(text));
        }
        secrets.sort_by_key(|secret| secret.start);
        secrets
    }
}

impl Redact for Redactor {
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        super::blotted(text, self.secrets(text))
    }
}

/// How JSON web tokens begin.
const JSON_WEB_TOKEN: &str = "eyJ";

static USUAL: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let prefixes = PREFIXES.iter().map(|(prefix, ..)| *prefix);
    let forms = FORMS.iter().map(|(anchor, _)| *anchor);
    search(prefixes.chain(forms).chain([JSON_WEB_TOKEN]).chain(names::anchors()))
});

fn search<'n>(anchors: impl IntoIterator<Item = &'n str>) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(anchors)
        .expect("short patterns, and few")
}

struct Scan<'t> {
    text: &'t str,
    /// Further sensitive names.
    extra: &'t [Box<str>],
    secrets: Vec<Range<usize>>,
    /// The end of the last name that was looked at.
    named: usize,
    /// No JSON web token begins before.
    dotless: usize,
}

impl<'t> Scan<'t> {
    const fn new(text: &'t str, extra: &'t [Box<str>]) -> Self {
        Self { text, extra, secrets: Vec::new(), named: 0, dotless: 0 }
    }

    fn by(
        mut self,
        search: &AhoCorasick,
        secret_at: impl Fn(&mut Self, usize, Range<usize>) -> Option<Range<usize>>,
    ) -> Vec<Range<usize>> {
        let (text, mut at, mut known) = (self.text, 0, 0..0);
        while let Some(found) = search.find(Input::new(text).span(at..text.len())) {
            if known.contains(&found.start()) {
                at = known.end;
                continue;
            }
            let secret = secret_at(&mut self, found.pattern().as_usize(), found.range());
            // Between a name and its value there may be another secret.
            at = ceil_char_boundary(text, found.start() + 1);
            if let Some(secret) = secret {
                known = joined(&known, &secret);
                self.secrets.push(secret);
            }
        }
        self.secrets
    }

    fn secret_at(&mut self, pattern: usize, anchor: Range<usize>) -> Option<Range<usize>> {
        if let Some(prefix) = PREFIXES.get(pattern) {
            // `secret_` begins a token, or a name.
            return tokens::prefixed(self.text, anchor.clone(), *prefix)
                .or_else(|| self.named(anchor));
        }
        match FORMS.get(pattern - PREFIXES.len()) {
            Some((_, form)) => form(self.text, anchor),
            None if pattern == PREFIXES.len() + FORMS.len() => self.json_web_token(anchor),
            None => self.named(anchor),
        }
    }

    fn named(&mut self, anchor: Range<usize>) -> Option<Range<usize>> {
        if anchor.start < self.named {
            return None;
        }
        let secret;
        (secret, self.named) = names::look(self.text, anchor, self.extra);
        secret
    }

    fn json_web_token(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        if at.start < self.dotless || self.text[at.clone()] != *JSON_WEB_TOKEN {
            return None;
        }
        let end = at.end + run(self.text, at.end, DOTTED);
        let has_dot = self.text[at.clone().end..end].contains('.');
        if !has_dot {
            self.dotless = end;
        }
        (has_dot && end - at.start >= 24).then_some(at.start..end)
    }
}

/// Both, if they meet; else the later one.
fn joined(known: &Range<usize>, secret: &Range<usize>) -> Range<usize> {
    if secret.start <= known.end && known.start <= secret.end {
        known.start.min(secret.start)..known.end.max(secret.end)
    } else {
        secret.clone()
    }
}
