//! Failures as JSON, with the texts of their causes.
use super::verdict::VerdictForm;
use crate::failure::{CAUSES, RecordedFailure, RecordedText};
use serde::{Deserialize, Serialize};
use std::error::Error;
use tr_core::{FailureInfo, Ran, Verdict, causes};

/// Longer texts are cut.
const LONGEST: usize = 4_096;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FailureForm {
    code: String,
    #[serde(with = "VerdictForm")]
    verdict: Verdict,
    ran: Ran,
    #[serde(default)]
    exhausted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
}

impl FailureForm {
    pub(super) fn of(recorded: &RecordedFailure) -> Self {
        let text = |error: &(dyn Error + 'static)| {
            let mut text = error.to_string();
            let whole = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at));
            text.truncate(whole.unwrap_or_default());
            text
        };
        // What a failure info says is recorded beside the texts.
        let kept = |cause: &&(dyn Error + 'static)| !cause.is::<FailureInfo>();
        let error = recorded.error.as_deref().into_iter().flat_map(|error| causes(error));
        Self {
            code: recorded.code.to_string(),
            verdict: recorded.verdict,
            ran: recorded.ran,
            exhausted: recorded.exhausted,
            causes: error.filter(kept).take(CAUSES).map(text).collect(),
        }
    }

    pub(super) fn into_recorded(self) -> RecordedFailure {
        let cause = |cause, text| Some(Box::new(RecordedText::new(text, cause)));
        let error = self.causes.into_iter().rfold(None, cause);
        RecordedFailure {
            code: self.code.into(),
            verdict: self.verdict,
            ran: self.ran,
            exhausted: self.exhausted,
            error: error.map(|error| error as _),
        }
    }
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
        let text = serde_json::to_string(&FailureForm::of(&recorded)).unwrap();
        let again = serde_json::from_str::<FailureForm>(&text).unwrap().into_recorded();
        assert_eq!(again.classification(), recorded.classification());
        let words = |recorded: &RecordedFailure| {
            let error = recorded.error.as_deref().unwrap();
            causes(error).map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(words(&recorded), ["timeout: the tool may have run", "reset"]);
        assert_eq!(words(&again), ["reset"]);
    }
}
