//! What is wrong with a text, and where: one fault for each mistake, reported together.
use crate::suggest::closest;
use serde::Serialize;
use std::{borrow::Cow, error::Error, fmt};
use tr_core::{FailureInfo, Json, Ran, Verdict, code, setters};

/// Faults past this many are counted, not kept.
const KEPT: usize = 100;

/// One mistake: where it is, what was expected there, and what was found.
///
/// Never shows a value that could be a secret: of an envelope, only numbers, and short words where
/// one of a few words is expected.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct EnvelopeFault {
    pointer: Box<str>,
    expected: Cow<'static, str>,
    found: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Box<str>>,
    #[serde(skip)]
    offset: Option<usize>,
}

impl EnvelopeFault {
    /// A mistake at `pointer`, for readers of other forms.
    pub fn new(
        pointer: impl Into<Box<str>>,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Box<str>>,
    ) -> Self {
        let (pointer, expected, found) = (pointer.into(), expected.into(), found.into());
        Self { pointer, expected, found, hint: None, offset: None }
    }

    pub(crate) fn duplicate(pointer: impl Into<Box<str>>) -> Self {
        Self::new(pointer, "each name once", "a duplicate name")
    }

    setters! {
        /// At this offset, if there is one.
        #[doc(hidden)]
        fn at(offset: impl Into<Option<usize>>) { offset = offset.into() }

        /// Adds a hint how to fix it.
        fn hint(hint: impl Into<Box<str>>) { hint = Some(hint.into()) }
    }

    /// Suggests the known name that is most like `name`, if one is.
    #[doc(hidden)]
    #[must_use]
    pub fn meant<'k>(self, name: &str, known: impl IntoIterator<Item = &'k str>) -> Self {
        match closest(name, known) {
            Some(like) => self.hint(format!("did you mean {like:?}?")),
            None => self,
        }
    }

    /// The JSON pointer of the value that is wrong or missing; empty for the whole text.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// What was expected there.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What was found there; `nothing` if the value is missing.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// How to fix it, if that can be guessed.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The offset of the value in bytes, if it is known.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        self.offset
    }
}

impl fmt::Display for EnvelopeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "the whole text" } else { &self.pointer };
        write!(f, "{pointer}: expected {}, found {}", self.expected, self.found)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for EnvelopeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnvelopeFault({self})")
    }
}

/// Collects faults while a text is read to its end.
#[derive(Debug)]
pub struct Faults {
    kept: Vec<EnvelopeFault>,
    more: usize,
    /// Where in memory the text begins, so that a slice of it tells its offset.
    origin: usize,
    /// Strings of this text may be shown: it is configuration, not a user's data.
    pub reveal: bool,
}

impl Faults {
    /// None yet, of a text that may hold secrets.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { kept: Vec::new(), more: 0, origin: text.as_ptr() as usize, reveal: false }
    }

    /// None yet, of a text that is configuration.
    #[must_use]
    pub fn of_configuration(text: &str) -> Self {
        Self { reveal: true, ..Self::of(text) }
    }

    /// Where in the text a slice of it begins.
    #[must_use]
    pub fn offset_of(&self, slice: &str) -> usize {
        (slice.as_ptr() as usize).wrapping_sub(self.origin)
    }

    /// Adds a fault, unless it is known already.
    pub fn push(&mut self, fault: EnvelopeFault) {
        // Two readers may report the same mistake; only one of them knows the offset.
        let same = |kept: &EnvelopeFault| {
            (&kept.pointer, &kept.expected, &kept.found)
                == (&fault.pointer, &fault.expected, &fault.found)
        };
        if self.kept.len() >= KEPT {
            self.more += 1;
        } else if !self.kept.iter().any(same) {
            self.kept.push(fault);
        }
    }

    /// Adds the fault that something else than `expected` was found at `pointer`.
    pub fn add(
        &mut self,
        pointer: impl Into<Box<str>>,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Box<str>>,
    ) {
        self.push(EnvelopeFault::new(pointer, expected, found));
    }

    /// Gives those that have no offset theirs of these.
    pub(crate) fn locate(&mut self, offsets: Vec<usize>) {
        for (fault, offset) in self.kept.iter_mut().zip(offsets) {
            fault.offset.get_or_insert(offset);
        }
    }

    /// Those that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &EnvelopeFault> {
        self.kept.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The faults in the order of the text, and how many more there are.
    #[must_use]
    pub fn into_sorted(mut self) -> (Vec<EnvelopeFault>, usize) {
        self.kept.sort_by_key(|fault| fault.offset.unwrap_or(usize::MAX));
        (self.kept, self.more)
    }
}

/// An envelope that does not have its form. The tool did not run.
///
/// Terminal: no retry, no record, no breaker count. [`faults`](Self::faults) are all there are, in
/// the order of the text; what is missing counts as the beginning of its object. Past 100 they are
/// only counted.
#[derive(Debug)]
pub struct InvalidEnvelope(Box<Refusal>);

#[derive(Debug)]
struct Refusal {
    form: &'static str,
    faults: Vec<EnvelopeFault>,
    more: usize,
    info: FailureInfo,
}

impl InvalidEnvelope {
    pub(crate) fn new(form: &'static str, faults: Faults) -> Self {
        let (faults, more) = faults.into_sorted();
        let info = FailureInfo::new(code::INVALID_ENVELOPE, Ran::No, Verdict::Permanent).by_layer();
        Self(Box::new(Refusal { form, faults, more, info }))
    }

    /// Every mistake.
    #[must_use]
    pub fn faults(&self) -> &[EnvelopeFault] {
        &self.0.faults
    }

    /// `{"faults": […]}`, for the details of an error: each fault with `pointer`, `expected`, `found` and,
    /// where it can be guessed, `hint`; past 100 of them, `more` says how many more there are.
    #[must_use]
    pub fn details(&self) -> Json {
        let mut details = serde_json::json!({ "faults": self.faults() });
        if self.0.more > 0 {
            details["more"] = self.0.more.into();
        }
        details.into()
    }

    /// The form that the text was read as, such as `ToolCallEnvelope`.
    #[must_use]
    pub fn form(&self) -> &'static str {
        self.0.form
    }
}

impl fmt::Display for InvalidEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid {}", self.0.form)?;
        for (i, fault) in self.0.faults.iter().enumerate() {
            write!(f, "{} {fault}", if i == 0 { ":" } else { ";" })?;
        }
        match self.0.more {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl Error for InvalidEnvelope {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0.info)
    }
}
