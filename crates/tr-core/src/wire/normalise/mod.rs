//! One form for the many ways in which tools fail.
mod recognise;
mod silent;

use super::read::{Kind, Source};
use crate::{Classify, Json, OutcomeParts, Ran, Standard, ToolError, ToolOutcome, find};
use std::error::Error;

/// The tool returned `null`.
pub const EMPTY_RESULT: &str = "empty_result";
/// The tool returned `ok: false`, or an error, and no code with it.
pub const NOT_OK: &str = "not_ok";
/// The tool returned an exit code other than 0.
pub const NONZERO_EXIT: &str = "nonzero_exit";

/// Turns what a tool gave back into an outcome that says whether it failed.
///
/// - An answer that is an envelope already, of either form, is taken as what it says. It must have
///   all that its form requires, and an error exactly if its status is no success; whatever else
///   has a `status` is a tool's plain answer.
/// - `null`, `ok: false`, an `error` that is not empty, and an exit code other than 0 are failures.
///   Content stays beside the error.
/// - Everything else is a success.
///
/// Whether such a failure is transient is for [`classify`](crate::classify) to say.
///
/// ```
/// use tr_core::{Json, wire::Normaliser};
///
/// let given = Json::from_text(r#"{"exitCode": 128, "stderr": "fatal: not a git repository"}"#)?;
/// let outcome = Normaliser::default().outcome(given);
/// let error = outcome.error().unwrap();
/// assert_eq!(&*error.message, "Exit code 128: fatal: not a git repository");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Normaliser {
    null_is_success: bool,
}

impl Normaliser {
    /// Takes `null` for the success of a tool that has nothing to say.
    #[must_use]
    pub const fn null_is_success(mut self) -> Self {
        self.null_is_success = true;
        self
    }

    /// The outcome of a tool that gave `content` back.
    #[must_use]
    pub fn outcome(&self, content: Json) -> ToolOutcome {
        self.normalise(ToolOutcome::success(content))
    }

    /// The outcome that `outcome` really is: one that reports a failure is left as it is.
    #[must_use]
    pub fn normalise(&self, mut outcome: ToolOutcome) -> ToolOutcome {
        let Some(content) = outcome.content().filter(|_| outcome.error().is_none()) else {
            return outcome;
        };
        match Source::Json(content.as_raw()).kind() {
            Kind::Null if self.null_is_success => outcome,
            Kind::Null => {
                let error = ToolError::new(EMPTY_RESULT, "The tool returned nothing");
                outcome.parts_mut().error = Some(error);
                outcome
            }
            Kind::Object => {
                if let Some(said) = recognise::envelope(content) {
                    return said;
                }
                if let Some(error) = silent::failure(content) {
                    outcome.parts_mut().error = Some(error);
                }
                outcome
            }
            _ => outcome,
        }
    }
}

/// The failure of a tool that returned an error instead of an answer.
#[must_use]
pub fn thrown(error: &(dyn Error + Send + Sync + 'static)) -> ToolError {
    let found = Classify::<ToolOutcome>::classify(&Standard, Err(error));
    match find::<ToolError>(error) {
        Some(own) => {
            let mut own = own.clone();
            // Deeper in the chain it speaks of another call than this one.
            if own.ran == Ran::No {
                own.ran = found.ran;
            }
            own
        }
        None => ToolError::new(found.code, error.to_string()).classified(found),
    }
}

impl From<ToolError> for ToolOutcome {
    fn from(error: ToolError) -> Self {
        OutcomeParts { error: Some(error), ..OutcomeParts::default() }.into()
    }
}
