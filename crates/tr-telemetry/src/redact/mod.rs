//! Takes secrets out of text that people will read.
//!
//! Not logging params is the design; this is the net below it, for error messages, ids and names
//! that come from outside. Text is searched once for a few short anchors; only what stands around
//! an anchor is looked at more closely, so clean text costs one pass.
mod hidden;
mod names;
mod tokens;

pub(crate) use self::hidden::Hidden;
use self::tokens::Rule;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use std::{borrow::Cow, fmt::Debug, ops::Range, sync::LazyLock};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Takes secrets out of text before it goes into a log, a span or a label.
pub trait Redact: Debug + Send + Sync {
    /// `text` without its secrets.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str>;
}

/// The usual redactor: values under sensitive names, and well-known forms of secrets.
///
/// - Names in any case style (`api_key`, `apiKey`, `X-API-KEY`), followed by `:` or `=`: passwords,
///   tokens, keys, credentials, cookies, and the names that were added.
/// - Tokens of the big platforms by their prefixes, JSON web tokens, private keys, bearer and basic
///   credentials, the user part of URLs.
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
    /// Those and the usual anchors; `None` without extra names.
    search: Option<AhoCorasick>,
}

static USUAL: LazyLock<AhoCorasick> = LazyLock::new(|| search([]));

fn search<'n>(extra: impl IntoIterator<Item = &'n str>) -> AhoCorasick {
    let rules = tokens::RULES.iter().map(|rule| rule.anchor);
    let anchors: Vec<&str> = rules.chain(names::ANCHORS.iter().copied()).chain(extra).collect();
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(anchors)
        .expect("a few dozen short patterns")
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
        let anchors: Vec<&str> = self.extra.iter().map(|name| names::head(name)).collect();
        self.search = (!anchors.is_empty()).then(|| search(anchors));
        self
    }

    /// Whether values under `name` are hidden.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        names::is_sensitive(name, &self.extra)
    }

    /// Where secrets stand, by their start; they may overlap.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let search = self.search.as_ref().unwrap_or(&USUAL);
        let (mut secrets, mut at) = (Vec::<Range<usize>>::new(), 0);
        while let Some(found) = search.find(Input::new(text).span(at..text.len())) {
            let known = secrets.last().filter(|secret| secret.contains(&found.start()));
            at = match known {
                Some(secret) => secret.end,
                None => match self.secret_at(text, found.pattern().as_usize(), found.range()) {
                    Some(secret) if secret.start <= found.start() => {
                        let end = secret.end;
                        secrets.push(secret);
                        end
                    }
                    // Between a name and its value there may be another secret.
                    secret => {
                        secrets.extend(secret);
                        found.start() + 1
                    }
                },
            };
            at = ceil(text, at);
        }
        secrets.sort_by_key(|secret| secret.start);
        secrets
    }

    fn secret_at(&self, text: &str, pattern: usize, anchor: Range<usize>) -> Option<Range<usize>> {
        match tokens::RULES.get(pattern) {
            Some(Rule { form, .. }) => form(text, anchor),
            None => names::value_at(text, anchor, |name| self.hides(name)),
        }
    }
}

impl Redact for Redactor {
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let secrets = self.secrets(text);
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut clean, mut done) = (String::with_capacity(text.len()), 0);
        for secret in secrets {
            if secret.start >= done {
                clean.push_str(&text[done..secret.start]);
                clean.push_str(REDACTED);
            }
            done = done.max(secret.end);
        }
        clean.push_str(&text[done..]);
        Cow::Owned(clean)
    }
}

/// Redacts `text` and cuts it to at most `most` bytes.
pub(crate) fn cut<'t>(redactor: &dyn Redact, text: &'t str, most: usize) -> Cow<'t, str> {
    // What would be cut away anyway need not be looked at; but never cut within a word, lest half
    // a secret stay that nobody recognises.
    let looked_at = if text.len() > 8 * most {
        let head = &text[..floor(text, 8 * most)];
        head.rfind(char::is_whitespace).map_or("", |end| &head[..end])
    } else {
        text
    };
    match redactor.redact(looked_at) {
        clean if clean.len() <= most => clean,
        clean => Cow::Owned(format!("{}…", &clean[..floor(&clean, most - '…'.len_utf8())])),
    }
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests;
