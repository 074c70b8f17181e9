//! One form for the many ways in which tools fail.
mod prescan;
mod silent;

pub use self::silent::{NONZERO_EXIT, NOT_OK};

use crate::{
    bs_tim_5::ToolResultEnvelope,
    read::{Kind, Source},
    utee::{ResponseStatus, ToolResponse},
};
use std::error::Error;
use tr_core::{
    DefaultPolicy, Json, Ran, ResponsePolicy, Status, ToolError, ToolManifest, ToolOutcome,
    Verdict, classify, find,
};

/// The tool returned `null`.
pub const EMPTY_RESULT: &str = "empty_result";

/// Turns what a tool gave back into an outcome that says whether it failed.
///
/// - An answer that is an envelope already, of either form, is taken as what it says. It must have
///   all that its form requires, and an error exactly if its status is no success; whatever else
///   has a `status` is a tool's plain answer.
/// - `null`, `ok: false`, an `error` that is not empty, and an exit code other than 0 are failures.
///   Content stays beside the error. The `null` of a stream's chunk is none.
/// - Everything else is a success. To see that takes one look over the text, and allocates nothing.
///
/// Whether such a failure is transient is for [`classify`](tr_core::classify) to say; or for
/// [`judge`](Self::judge), which does both.
///
/// ```
/// use tr_core::Json;
/// use tr_wire::Normaliser;
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
    pub fn normalise(&self, outcome: ToolOutcome) -> ToolOutcome {
        match self.hidden(&outcome) {
            None => outcome,
            Some(Detected::Envelope(said, _)) => said,
            Some(Detected::Failure(error)) => failed(outcome, error),
        }
    }

    /// The same, with the verdict on a failure that was found, under the tool's manifest.
    ///
    /// Such a failure is an answer, so the tool ran: for good if the failure is permanent
    /// ([`Ran::Yes`]), perhaps in part if it is transient ([`Ran::Unknown`]). [`Ran::No`] only by the
    /// `ran` of an envelope. A silent failure of unknown meaning is permanent: it is
    /// for the model to read, as an MCP result with `isError` is.
    ///
    /// ```
    /// use tr_core::{Json, Ran, ToolOutcome, Verdict};
    /// use tr_wire::Normaliser;
    ///
    /// let judged = |json: &str| {
    ///     let outcome = ToolOutcome::success(Json::from_text(json).unwrap());
    ///     let error = Normaliser::default().judge(outcome, None).error().unwrap().clone();
    ///     (error.verdict, error.ran)
    /// };
    /// assert_eq!(judged(r#"{"exitCode": 1}"#), (Some(Verdict::Permanent), Ran::Yes));
    /// let refused = r#"{"ok": false, "error": "connection refused"}"#;
    /// assert_eq!(judged(refused), (Some(Verdict::TRANSIENT), Ran::Unknown));
    /// ```
    #[must_use]
    #[inline]
    pub fn judge(&self, outcome: ToolOutcome, manifest: Option<&ToolManifest>) -> ToolOutcome {
        let mut judged = match self.hidden(&outcome) {
            None => outcome,
            Some(hidden) => hidden.judged(outcome, manifest),
        };
        judged.set_unwrapped();
        judged
    }

    /// The outcome without the envelope around its content, if it has one; for a writer of envelopes, which
    /// must not put one around another. It looks for no other failures, and not again at what a normaliser
    /// has seen.
    ///
    /// ```
    /// use tr_core::{Json, ToolOutcome};
    /// use tr_wire::Normaliser;
    ///
    /// let given = r#"{"requestId": "r", "status": "success", "result": 12, "durationMs": 3}"#;
    /// let outcome = ToolOutcome::success(Json::from_text(given)?);
    /// let outcome = Normaliser::default().unwrap_envelope(outcome, None);
    /// assert_eq!(outcome.content().unwrap().get(), "12");
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn unwrap_envelope(
        &self,
        outcome: ToolOutcome,
        manifest: Option<&ToolManifest>,
    ) -> ToolOutcome {
        if outcome.is_unwrapped() {
            return outcome;
        }
        match self.hidden(&outcome) {
            Some(hidden @ Detected::Envelope(..)) => hidden.judged(outcome, manifest),
            _ => outcome,
        }
    }

    /// What a success hides, if it does.
    #[inline]
    fn hidden(&self, outcome: &ToolOutcome) -> Option<Detected> {
        let parts = outcome.parts();
        let content = parts.content.as_ref().filter(|_| parts.error.is_none())?;
        match Source::Json(content.as_raw()).kind() {
            Kind::Null if self.null_is_success || parts.chunk.is_some() => None,
            Kind::Null => {
                let error = ToolError::new(EMPTY_RESULT, "The tool returned nothing");
                Some(Detected::Failure(error))
            }
            Kind::Object if prescan::is_suspicious(content.get()) => match envelope(content) {
                Some((said, ran)) => Some(Detected::Envelope(said, ran)),
                None => silent::failure(content).map(Detected::Failure),
            },
            _ => None,
        }
    }
}

/// What a tool returned as its answer, but is none.
enum Detected {
    /// An envelope, and what that says of whether the tool ran.
    Envelope(ToolOutcome, Option<Ran>),
    /// A failure that looks like an answer.
    Failure(ToolError),
}

impl Detected {
    #[cold]
    fn judged(self, outcome: ToolOutcome, manifest: Option<&ToolManifest>) -> ToolOutcome {
        let (mut outcome, said) = match self {
            Self::Envelope(said, ran) => (said, ran),
            Self::Failure(mut error) => {
                if classify::tool_error(&error).end.verdict == Verdict::Cancelled {
                    error.verdict = Some(Verdict::Permanent);
                }
                (failed(outcome, error), None)
            }
        };
        if outcome.error().is_some()
            && let Some(error) = &mut outcome.parts_mut().error
        {
            classify::stamp(error, manifest);
            let is_transient = error.verdict.is_some_and(Verdict::is_transient);
            error.ran = said.unwrap_or(if is_transient { Ran::Unknown } else { Ran::Yes });
        }
        outcome
    }
}

fn failed(mut outcome: ToolOutcome, error: ToolError) -> ToolOutcome {
    outcome.parts_mut().error = Some(error);
    outcome
}

/// The failure of a tool that returned an error instead of an answer.
#[must_use]
pub fn thrown(error: &(dyn Error + Send + Sync + 'static)) -> ToolError {
    let found = ResponsePolicy::<ToolOutcome>::classify(&DefaultPolicy, Err(error));
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

/// What an envelope says, if `content` is one, and what it says of whether the tool ran.
fn envelope(content: &Json) -> Option<(ToolOutcome, Option<Ran>)> {
    let text = content.get();
    // Both forms have these; most answers have not, and need not be read twice.
    if !text.contains("\"requestId\"") || !text.contains("\"status\"") {
        return None;
    }
    let bs_tim_5 = || {
        let envelope = ToolResultEnvelope::read(text).ok().filter(is_sound)?;
        let ran = envelope.error.as_ref().and_then(|failure| failure.ran);
        Some((envelope.into(), ran))
    };
    let utee = || {
        let response = ToolResponse::read(text).ok().filter(is_whole)?;
        let ran = response.error.as_ref().and_then(|failure| failure.ran);
        Some((response.into(), ran))
    };
    bs_tim_5().or_else(utee)
}

fn is_sound(envelope: &ToolResultEnvelope) -> bool {
    (envelope.status == Status::Success) == envelope.error.is_none()
}

/// `requestId` and `status` alone are too common to tell an envelope by.
fn is_whole(response: &ToolResponse) -> bool {
    response.duration_ms.is_some()
        && match response.status {
            ResponseStatus::Error => response.error.is_some(),
            ResponseStatus::Success | ResponseStatus::Partial => {
                response.error.is_none() && response.result.is_some()
            }
        }
}
