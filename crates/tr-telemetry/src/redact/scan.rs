//! One pass over a text by its anchors.
//!
//! Whatever an anchor makes us look at is either short, or skipped afterwards, or remembered: the
//! time is linear in the text's length. Names are looked at once, however many anchors they hold.
use super::{
    forms::FORMS,
    names::{self, Looked},
    tokens::{self, DOTTED, PREFIXES, run},
};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use std::{ops::Range, sync::LazyLock};

/// How JSON web tokens begin.
const JSON_WEB_TOKEN: &str = "eyJ";

static USUAL: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let prefixes = PREFIXES.iter().map(|(prefix, ..)| *prefix);
    let forms = FORMS.iter().map(|(anchor, _)| *anchor);
    let names = names::ANCHORS.iter().copied();
    search(prefixes.chain(forms).chain([JSON_WEB_TOKEN]).chain(names))
});

pub(super) fn search<'n>(anchors: impl IntoIterator<Item = &'n str>) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(anchors)
        .expect("short patterns, and few")
}

pub(super) struct Scan<'t> {
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
    pub(super) const fn new(text: &'t str, extra: &'t [Box<str>]) -> Self {
        Self { text, extra, secrets: Vec::new(), named: 0, dotless: 0 }
    }

    /// What the usual anchors find.
    pub(super) fn usual(self) -> Vec<Range<usize>> {
        self.by(&USUAL, Self::secret_at)
    }

    /// What stands under names with these anchors.
    pub(super) fn names(self, anchors: &AhoCorasick) -> Vec<Range<usize>> {
        self.by(anchors, |scan, _, anchor| scan.named(anchor))
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
            at = ceil(text, found.start() + 1);
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
        let Looked { secret, end } = names::look(self.text, anchor, self.extra);
        self.named = end;
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

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
