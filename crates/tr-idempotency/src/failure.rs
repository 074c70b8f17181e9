//! Failures as records keep them.
use std::{
    error::Error,
    fmt::{self, Display, Write},
};
use tr_core::{BoxError, Classification, Ran, Verdict, causes, shortened, shortened_code};

/// Failures of fewer bytes are not shortened.
pub(crate) const SMALL_FAILURE: usize = 1_024;

/// The most causes of an error that are measured and kept.
pub(crate) const CAUSES: usize = 8;

/// A failure as a record keeps it.
#[derive(Debug)]
pub(crate) struct RecordedFailure {
    pub(crate) code: Box<str>,
    pub(crate) verdict: Verdict,
    pub(crate) ran: Ran,
    pub(crate) exhausted: bool,
    pub(crate) error: Option<BoxError>,
}

impl RecordedFailure {
    /// The code alone, without texts.
    pub(crate) fn bare(&self) -> Self {
        let Self { verdict, ran, exhausted, .. } = *self;
        Self { code: self.code.clone(), verdict, ran, exhausted, error: None }
    }

    /// The size in bytes of the texts of the error and its causes.
    pub(crate) fn size(&self) -> usize {
        let error = self.error.as_deref().map(|error| error as &(dyn Error + 'static));
        let links = error.into_iter().flat_map(|error| causes(error).take(CAUSES));
        links.map(|link| length(&link)).sum()
    }

    /// The shortened failure, if its text is long.
    pub(crate) fn brief(&self) -> Option<Self> {
        let bytes = self.size();
        let error = self.error.as_ref().filter(|_| bytes >= SMALL_FAILURE)?;
        let text = shortened(&error.to_string(), bytes);
        Some(Self {
            code: self.code.clone(),
            error: Some(Box::new(RecordedText::new(text, None))),
            ..*self
        })
    }

    pub(crate) fn new(end: Classification<'_>, error: Option<BoxError>) -> Self {
        let Classification { verdict, ran, code, exhausted, .. } = end;
        Self { code: shortened_code(code).into(), verdict, ran, exhausted, error }
    }

    pub(crate) fn classification(&self) -> Classification<'_> {
        let Self { verdict, ran, ref code, exhausted, .. } = *self;
        let mut end = Classification::new(verdict, ran, code);
        end.exhausted = exhausted;
        end
    }
}

/// An error whose text was recorded.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct RecordedText {
    text: String,
    #[source]
    cause: Option<Box<Self>>,
}

impl RecordedText {
    pub(crate) const fn new(text: String, cause: Option<Box<Self>>) -> Self {
        Self { text, cause }
    }
}

/// The length of a `Display` text, without building the text.
fn length(text: &dyn Display) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    // `Count` never fails; text that a failing `Display` did not write does not count.
    let _ = write!(count, "{text}");
    count.0
}
