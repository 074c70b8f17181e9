//! What an agent says beside a tool's params, in the member `_utee`.
use crate::{
    Extra, InvalidEnvelope,
    read::{
        At, Count, Factor, Flag, List, Maybe, Millis, Name, Node, Percent, Source, Text, Word,
        Write, object, shape, value,
    },
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;
use tr_core::{CallParts, Params, Priority, RetryOverride, call::TraceParts};

object! { open
    /// What an agent says beside a tool's params, in the member `_utee`.
    ///
    /// What the envelope around the params says itself comes first.
    #[derive(Default)]
    pub struct Options {
        /// Names this request.
        "requestId" => request_id: Option<Box<str>>, Maybe<Name>;
        /// The caller's key: a repeat with it is the same call.
        "idempotencyKey" => idempotency_key: Option<Box<str>>, Maybe<Name>;
        /// How long one attempt may take, in milliseconds.
        "timeout" => timeout: Option<u64>, Maybe<Millis<1>>;
        /// A hint for scheduling: within a turn it says which call starts first.
        "priority" => priority: Option<Priority>, Maybe<Word<Priority>>;
        /// The trace that the call belongs to.
        "traceId" => trace_id: Option<Box<str>>, Maybe<Text>;
        /// The call's own span.
        "spanId" => span_id: Option<Box<str>>, Maybe<Text>;
        /// The caller's span.
        "parentSpanId" => parent_span_id: Option<Box<str>>, Maybe<Text>;
        /// An id by which the call can be cancelled while it runs.
        "cancellationId" => cancellation_id: Option<Box<str>>, Maybe<Name>;
        /// The caller accepts a response in chunks: `Envelopes::answers` gives them, and the tool may look.
        "preferStreaming" => prefer_streaming: Option<bool>, Maybe<Flag>;
        /// Under which the answer of an idempotent read may be cached. For the tool to look at: no
        /// layer caches.
        "cacheKey" => cache_key: Option<Box<str>>, Maybe<Text>;
        /// Changes to the retry policy.
        "retryPolicy" => retry_policy: Option<RetryPolicy>, Maybe<RetryPolicy>;
    }
}

impl Options {
    /// Takes `_utee` out of params: gives the params that the tool is to see, and the options if
    /// there are any. Params without `_utee` stay the very same text.
    ///
    /// ```
    /// use tr_core::Params;
    /// use tr_wire::utee::Options;
    ///
    /// let params = Params::from_text(r#"{"command": "git status", "_utee": {"timeout": 5000}}"#)?;
    /// let (params, options) = Options::take(&params)?;
    /// assert_eq!(params.get(), r#"{"command":"git status"}"#);
    /// assert_eq!(options.unwrap().timeout, Some(5000));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Names every fault of `_utee`. The tool did not run.
    pub fn take(params: &Params) -> Result<(Params, Option<Self>), InvalidEnvelope> {
        let Some((rest, raw)) = split(params) else { return Ok((params.clone(), None)) };
        let options = value::<Self>("params", &raw, &At::Member(&At::Root, UTEE))?;
        Ok((rest, Some(options)))
    }

    /// Says it for a call.
    pub(crate) fn apply(self, parts: &mut CallParts) {
        parts.request_id = self.request_id;
        parts.idempotency.key = self.idempotency_key;
        parts.hints.timeout = self.timeout.map(Duration::from_millis);
        parts.hints.prefer_streaming = self.prefer_streaming.unwrap_or(false);
        parts.hints.cache_key = self.cache_key;
        parts.priority = self.priority.unwrap_or_default();
        parts.trace.trace_id = self.trace_id;
        parts.trace.span_id = self.span_id;
        parts.trace.parent_span_id = self.parent_span_id;
        parts.trace.traceparent = traceparent(&parts.trace);
        parts.cancellation_id = self.cancellation_id;
        parts.retry = self.retry_policy.map(RetryOverride::from);
    }
}

/// The ids as W3C's `traceparent`, if they are W3C's: the caller's own span is the call's parent,
/// else the one above it.
fn traceparent(trace: &TraceParts) -> Option<Box<str>> {
    let is_id = |id: &&str, length: usize| {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        id.len() == length && id.bytes().all(is_hex) && id.bytes().any(|byte| byte != b'0')
    };
    let id = trace.trace_id.as_deref().filter(|id| is_id(id, 32))?;
    let span = trace.span_id.as_deref().or(trace.parent_span_id.as_deref());
    let span = span.filter(|span| is_id(span, 16))?;
    Some(format!("00-{id}-{span}-01").into())
}

object! { open
    /// A caller's changes to the retry policy. What is absent stays as the layer has it; with
    /// `RetryConfig::per_request()` that is 3 attempts, 100 ms, 5000 ms, 2.0 and 20 %.
    #[derive(Default)]
    pub struct RetryPolicy {
        /// Attempts in all, the first included; at most 1000.
        "maxAttempts" => max_attempts: Option<u32>, Maybe<Count<1000>>;
        /// The first delay, in milliseconds.
        "initialDelayMs" => initial_delay_ms: Option<u64>, Maybe<Millis<0>>;
        /// No delay is longer, in milliseconds.
        "maxDelayMs" => max_delay_ms: Option<u64>, Maybe<Millis<0>>;
        /// By what each delay grows.
        "backoffMultiplier" => backoff_multiplier: Option<f64>, Maybe<Factor>;
        /// How far a delay may stray to either side, in percent.
        "jitterPercent" => jitter_percent: Option<f64>, Maybe<Percent>;
        /// Only these codes are retried; empty for all that are retryable.
        "retryableErrors" => retryable_errors: Option<Vec<Box<str>>>, Maybe<List<Text>>;
    }
}

impl From<RetryPolicy> for RetryOverride {
    fn from(policy: RetryPolicy) -> Self {
        Self {
            attempts: policy.max_attempts,
            base: policy.initial_delay_ms.map(Duration::from_millis),
            multiplier: policy.backoff_multiplier,
            cap: policy.max_delay_ms.map(Duration::from_millis),
            jitter: policy.jitter_percent.map(Percent::to_either_side),
            max_elapsed: None,
            only_codes: policy.retryable_errors,
        }
    }
}

/// The member of params that is for us.
const UTEE: &str = "_utee";

shape! {
    /// A tool's params: an object whose `_utee`, if there is one, has its form.
    pub(crate) CallParams => Params, "an object",
    |node, faults| {
        let Ok(members) = node.source.members() else {
            return node.refuse(Self::expected(), faults);
        };
        if let Some((_, source)) = members.iter().find(|(name, _)| name == UTEE) {
            Options::read(&Node::new(&At::Member(node.at, UTEE), *source), faults)?;
        }
        Some(node.source.json())
    },
    |generator| { "type": "object", "properties": { UTEE: (generator.subschema_for::<Options>()) } }
}

impl Write for CallParams {
    fn write(params: &Params) -> impl Serialize {
        params
    }
}

/// Parts `_utee` from the other params; `None` if it is not there.
fn split(params: &Params) -> Option<(Params, Box<RawValue>)> {
    // An escape may hide the name; without either the text need not be read.
    if !params.get().contains(UTEE) && !params.get().contains("\\u") {
        return None;
    }
    let mut members = Source::Json(params.as_raw()).members().ok()?;
    let at = members.iter().position(|(name, _)| name == UTEE)?;
    let options = members.remove(at).1.raw()?;
    let rest: Extra = members.into_iter().collect();
    Some((rest.to_json(), options.to_owned()))
}
