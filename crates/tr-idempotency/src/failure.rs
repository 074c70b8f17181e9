//! Failures as records keep them.
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    error::Error,
    fmt::{self, Display, Write},
};
use tr_core::{
    BoxError, Classification, FailureInfo, Ran, Verdict, causes, shortened, shortened_code,
};

/// Failures of fewer bytes are not shortened.
pub(crate) const SMALL_FAILURE: usize = 1_024;

/// The most causes of an error that are measured and kept.
const CAUSES: usize = 8;

/// Longer texts of causes are cut in a store.
const LONGEST: usize = 4_096;

/// A failure as a record keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedFailure {
    pub(crate) code: Box<str>,
    pub(crate) verdict: Verdict,
    pub(crate) ran: Ran,
    #[serde(default)]
    pub(crate) exhausted: bool,
    /// In a store: the texts of its causes.
    #[serde(default, rename = "causes", with = "texts", skip_serializing_if = "texts::are_none")]
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
            error: Some(Box::new(RecordedText { text, cause: None })),
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
struct RecordedText {
    text: String,
    #[source]
    cause: Option<Box<Self>>,
}

/// An error as the texts of its causes.
mod texts {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        error: &Option<BoxError>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let text = |error: &(dyn Error + 'static)| {
            let mut text = error.to_string();
            let whole = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at));
            text.truncate(whole.unwrap_or_default());
            text
        };
        to.collect_seq(kept(error).map(text))
    }

    pub(super) fn are_none(error: &Option<BoxError>) -> bool {
        kept(error).next().is_none()
    }

    /// The causes whose texts are recorded: what a failure info says is recorded beside them.
    fn kept(error: &Option<BoxError>) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let causes = error.as_deref().into_iter().flat_map(|error| causes(error));
        causes.filter(|cause| !cause.is::<FailureInfo>()).take(CAUSES)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<BoxError>, D::Error> {
        let cause = |cause, text| Some(Box::new(RecordedText { text, cause }));
        let error = Vec::<String>::deserialize(from)?.into_iter().rfold(None, cause);
        Ok(error.map(|error| error as _))
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
    // What a failing `Display` did not write does not count.
    let _ = write!(count, "{text}");
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tr_core::code;

    #[test]
    fn a_failure_keeps_its_facts_and_the_words_of_its_causes() {
        let error =
            FailureInfo::new(code::TIMEOUT, Ran::Unknown, Verdict::TRANSIENT).because("reset");
        let recorded = RecordedFailure {
            code: "timeout".into(),
            verdict: Verdict::Transient { retry_after: Some(Duration::from_secs(3)) },
            ran: Ran::Unknown,
            exhausted: true,
            error: Some(error.into()),
        };
        let text = serde_json::to_string(&recorded).unwrap();
        // As records of earlier versions have it.
        let kept = r#"{"code":"timeout","verdict":{"transient":{"retry_after":{"secs":3,"nanos":0}}},"ran":"unknown","exhausted":true,"causes":["reset"]}"#;
        assert_eq!(text, kept);
        let again: RecordedFailure = serde_json::from_str(&text).unwrap();
        assert_eq!(again.classification(), recorded.classification());
        let words = |recorded: &RecordedFailure| {
            let error = recorded.error.as_deref().unwrap();
            causes(error).map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(words(&recorded), ["timeout: the tool may have run", "reset"]);
        assert_eq!(words(&again), ["reset"]);
    }
}
