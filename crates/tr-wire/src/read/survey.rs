//! Whether a text is JSON at all, and means one thing only.
use super::At;
use crate::fault::{EnvelopeFault, Faults};
use serde_json::value::RawValue;
use std::collections::HashSet;
use tr_core::{
    canonical::{self, ErrorKind, MAX_DEPTH},
    internal::members,
};

/// Each level of nesting is scanned again when faults are looked for; past this many bytes the
/// rest goes unsearched, since one fault is enough to refuse a text.
const SCANNED: usize = 8 << 20;

/// What is asked of values that the reader does not look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// They must have a canonical form, because a key or a digest is made from them.
    Canonical,
    /// Any JSON goes; only the depth is bounded.
    Any,
}

/// Reports what keeps `text` from being JSON, or from having a canonical form. Gives the value if
/// it can be read any further.
pub(super) fn survey<'t>(
    text: &'t str,
    strictness: Strictness,
    faults: &mut Faults,
) -> Option<&'t RawValue> {
    let raw = serde_json::from_str(text);
    let Err(error) = canonical::to_string(text) else { return raw.ok() };
    let raw = raw.ok().filter(|_| is_ambiguous(error.kind()));
    match (raw, strictness) {
        (None, _) => {
            let found = format!("{} at byte {}", error.kind(), error.offset());
            faults.push(EnvelopeFault::new(error.pointer(), "JSON", found).at(error.offset()));
        }
        // A JSON text, only not one with a canonical form.
        (Some(_), Strictness::Any) => {
            if deepest(text) > MAX_DEPTH {
                let at = error.pointer();
                let at = if error.kind() == ErrorKind::TooDeep { at } else { "" };
                faults.add(at, LEVELS, "more");
            }
        }
        (Some(raw), Strictness::Canonical) => {
            let mut walk = Walk { left: SCANNED, faults };
            walk.value(raw, &At::Root, 0);
            if faults.is_empty() {
                let fault =
                    EnvelopeFault::new(error.pointer(), CANONICAL, error.kind().to_string());
                faults.push(fault.at(error.offset()));
            }
        }
    }
    raw
}

const LEVELS: &str = "at most 128 levels of nesting";
const CANONICAL: &str = "a value with a canonical form";

/// How deep a JSON text nests.
fn deepest(text: &str) -> usize {
    let (mut deepest, mut depth, mut quoted, mut escaped) = (0, 0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

const fn is_ambiguous(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::LoneSurrogate
            | ErrorKind::NumberOverflow
            | ErrorKind::DuplicateName
            | ErrorKind::TooDeep
    )
}

struct Walk<'f> {
    left: usize,
    faults: &'f mut Faults,
}

impl Walk<'_> {
    fn value(&mut self, raw: &RawValue, at: &At<'_>, depth: usize) {
        let text = raw.get();
        let Some(left) = self.left.checked_sub(text.len()) else { return };
        self.left = left;
        match text.as_bytes().first() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => {
                self.push(at, text, LEVELS, "more");
            }
            Some(b'{') => self.object(raw, at, depth + 1),
            Some(b'[') => {
                let elements = serde_json::from_str::<Vec<&RawValue>>(text);
                for (i, element) in elements.into_iter().flatten().enumerate() {
                    self.value(element, &At::Element(at, i), depth + 1);
                }
            }
            _ => {
                if let Err(error) = canonical::to_string(text) {
                    let found = error.kind().to_string();
                    self.push(at, text, CANONICAL, &found);
                }
            }
        }
    }

    fn object(&mut self, raw: &RawValue, at: &At<'_>, depth: usize) {
        let Ok(members) = members(raw.get()) else {
            // Its names cannot be decoded: half a surrogate pair.
            self.push(at, raw.get(), "names in valid Unicode", "a lone surrogate in a name");
            return;
        };
        let mut seen = HashSet::with_capacity(members.len());
        for (name, member) in &members {
            let at = At::Member(at, name);
            if !seen.insert(&**name) {
                let offset = self.faults.offset_of(member.get());
                self.faults.push(EnvelopeFault::duplicate(at.to_string()).at(offset));
            }
            self.value(member, &at, depth);
        }
    }

    fn push(&mut self, at: &At<'_>, text: &str, expected: &'static str, found: &str) {
        let offset = self.faults.offset_of(text);
        self.faults.push(EnvelopeFault::new(at.to_string(), expected, found).at(offset));
    }
}
