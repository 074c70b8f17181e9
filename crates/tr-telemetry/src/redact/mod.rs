//! Redacts secrets in text for logs, spans and labels.
//!
//! Not logging params is the design; this is the net below it, for error messages, ids and names
//! that come from outside. Text is searched once for a few short anchors; only what stands around
//! an anchor is looked at more closely, so clean text costs one pass.
mod entropy;
mod forms;
mod hidden;
mod names;
mod parts;
mod scan;
mod tokens;
mod values;

pub use self::hidden::Hidden;
use self::scan::Scan;
use aho_corasick::AhoCorasick;
use std::{borrow::Cow, fmt::Debug, ops::Range};

/// The replacement of a secret.
pub const REDACTED: &str = "[redacted]";

/// Redacts secrets in text before it goes into a log, a span or a label.
pub trait Redact: Debug + Send + Sync {
    /// `text` without its secrets.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str>;
}

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
        self.heads = (!heads.is_empty()).then(|| scan::search(heads));
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
        let mut secrets = Scan::new(text, &self.extra).usual();
        secrets.extend(parts::find(text));
        if let Some(heads) = &self.heads {
            secrets.append(&mut Scan::new(text, &self.extra).names(heads));
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
    // What would be cut away anyway need not be looked at; but never cut within a word, because half
    // a secret would not be recognised.
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

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests;
