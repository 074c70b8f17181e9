//! A value and its place, and what is wrong with it.
use super::source::{Kind, Source};
use crate::fault::{EnvelopeFault, Faults};
use std::{borrow::Cow, fmt};

/// A place in a text, as a chain that lives on the reader's stack: it costs nothing unless there
/// is a fault.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    Root,
    Member(&'a At<'a>, &'a str),
    Element(&'a At<'a>, usize),
}

/// Shows the JSON pointer.
impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) => {
                write!(f, "{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            Self::Element(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

/// A value and its place.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    pub at: &'a At<'a>,
    pub source: Source<'a>,
}

impl<'a> Node<'a> {
    pub const fn new(at: &'a At<'a>, source: Source<'a>) -> Self {
        Self { at, source }
    }

    /// Reports this value as not what was expected.
    pub fn refuse<T>(
        &self,
        expected: impl Into<Cow<'static, str>>,
        faults: &mut Faults,
    ) -> Option<T> {
        let found = self.describe(faults.reveal);
        self.refuse_found(expected, found, faults)
    }

    /// The same, where a short word may be shown, because only a few words are allowed there.
    pub fn refuse_word<T>(
        &self,
        expected: impl Into<Cow<'static, str>>,
        faults: &mut Faults,
    ) -> Option<T> {
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
        let short = self.source.text().is_some_and(|t| t.len() <= 20 && t.chars().all(word));
        let found = self.describe(faults.reveal || short);
        self.refuse_found(expected, found, faults)
    }

    pub fn refuse_found<T>(
        &self,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Box<str>>,
        faults: &mut Faults,
    ) -> Option<T> {
        faults.push(self.fault(expected, found, faults));
        None
    }

    pub fn fault(
        &self,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Box<str>>,
        faults: &Faults,
    ) -> EnvelopeFault {
        EnvelopeFault::new(self.at.to_string(), expected, found).at(self.source.offset(faults))
    }

    fn describe(&self, reveal: bool) -> String {
        match (self.source.kind(), self.source.text(), self.source.number()) {
            (Kind::String, Some(text), _) if text.is_empty() => "an empty string".into(),
            (Kind::String, Some(text), _) if reveal && text.len() <= 80 => format!("{text:?}"),
            (Kind::String, None, _) => "a string with a lone surrogate".into(),
            (Kind::Number, _, Some(number)) => number.to_string(),
            (Kind::Object, ..) => self.source.object_name().into(),
            (kind, ..) => kind.name().into(),
        }
    }
}
