//! How layers read a response, and what they note on it.
use crate::{Classification, Ran, Retried, classify};
use std::{borrow::Cow, error::Error};

/// How an attempt ended, before it is classified.
pub type End<'r, Res> = Result<&'r Res, &'r (dyn Error + Send + Sync + 'static)>;

/// Classifies the end of an attempt, and notes on a response what layers found out. All methods have
/// defaults.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how a `{Res}` ended",
    label = "no `ResponsePolicy<{Res}>` here",
    note = "write `impl ResponsePolicy<{Res}> for {Self} {{}}` beside your response type (all methods have defaults)",
    note = "or give the layer a policy that does, also for a type of another crate: `.policy(NamedPolicy::new(\"my_tool\"))`, or one of your own: `.policy(MyPolicy)`",
    note = "for requests and responses of the crate `http` enable the feature `http` of `tr-core` or `tr-policy`"
)]
pub trait ResponsePolicy<Res> {
    /// Classifies an end. Called once by each layer that needs to know; it must not panic.
    ///
    /// By default every response is a success, and an error is what [`classify::error`] makes of
    /// it: by its type, whatever its message says. A response that can be a failure needs an answer of
    /// its own: retry and breaker would not see it.
    fn classify<'r>(&self, end: End<'r, Res>) -> Classification<'r> {
        end.map_or_else(|error| classify::error(error), |_| Classification::SUCCESS)
    }

    /// Notes the retries on the response.
    fn note_retries(&self, _: &mut Res, _: Vec<Retried>) {}

    /// Notes on a failing response what is known of all attempts together: whether the tool ran, and
    /// whether it has been retried, so that outer layers do not retry it again.
    fn note_attempts(&self, _: &mut Res, _ran: Ran, _exhausted: bool) {}

    /// Notes on the response that it could not be recorded.
    fn note_unrecorded(&self, _: &mut Res) {}

    /// Notes the id of the span of the call on the response, if it is recorded.
    fn set_span(&self, _: &mut Res, _span: &str) {}

    /// Notes the id of an inner recorded span on the response.
    fn add_span(&self, _: &mut Res, _span: &str) {}

    /// What a response holds, as JSON text. Telemetry looks for sensitive values in it, and never
    /// shows it.
    fn content<'r>(&self, _: &'r Res) -> Option<&'r str> {
        None
    }

    /// The message of a failure; telemetry redacts it before it logs it.
    fn message<'r>(&self, end: End<'r, Res>) -> Option<Cow<'r, str>> {
        Some(end.err()?.to_string().into())
    }

    /// Whether a response came from a record. Where an idempotency layer inside tells an observer of
    /// telemetry, that is known without asking.
    fn is_from_cache(&self, _: &Res) -> bool {
        false
    }
}
