//! What is known of a tool before it is called.
use crate::{
    BreakerHint, DedupeScope, Effect, Json, Priority, RetryOverride, ToolId, Verdict,
    call::CallHints,
    canonical::{Pointer, Rules},
};
pub use tr_policy::{BreakerOrder, BreakerOverride, TtlOverride};
#[cfg(feature = "input-schema")]
mod input_schema;
mod outcome_check;

pub use self::outcome_check::OutcomeCheck;

#[cfg(feature = "input-schema")]
pub use self::input_schema::{InputSchema, InvalidParams, InvalidSchema};
use std::time::Duration;
#[cfg(feature = "input-schema")]
use std::{fmt, sync::OnceLock};

/// What is known of a tool before it is called. Fields are added in minor versions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolManifest {
    /// Which tool.
    pub tool: ToolId,
    /// Its effect; `None` if it is not declared.
    pub effect: Option<Effect>,
    /// What it can do. The layers use `Idempotency` and `OwnRetries`; `Streaming` and `Caching` are for
    /// programs that ask.
    pub capabilities: Vec<Capability>,
    /// JSON Schema of its params.
    pub input_schema: Option<Json>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How long an answer in chunks may wait for its next chunk.
    pub idle_timeout: Option<Duration>,
    /// Changes to the retry policy.
    pub retry: Option<RetryOverride>,
    /// Whether a repeat is safe although an earlier attempt may have run. `Some(false)` forbids it,
    /// whatever a caller expects.
    pub retry_safe: Option<bool>,
    /// Whether a call that may change something is cancelled when its caller stops waiting. It is of
    /// unknown outcome then; by default it goes on.
    pub cancellable: bool,
    /// Changes to the breaker.
    pub breaker: BreakerOverride,
    /// Which calls share a breaker, where a call does not say it itself.
    pub breaker_hint: Option<BreakerHint>,
    /// Changes to loop detection.
    pub loops: LoopOverride,
    /// How long records of its calls are kept.
    pub ttls: TtlOverride,
    /// How errors with these codes end, whatever else is known of them.
    pub classification: Vec<(Box<str>, Verdict)>,
    /// The codes and statuses by which the tool says that it did not run. They count where the
    /// error itself has them, not where its text names them.
    pub not_run: Vec<Box<str>>,
    /// What of its params does not count for keys and digests.
    pub rules: Rules,
    /// Whose calls its keys match. `Global` holds only for a tool that is declared read-only.
    pub scope: DedupeScope,
    /// The dependency that it stands on, for a breaker shared with others.
    pub dependency: Option<Box<str>>,
    /// The tools whose results it needs within a turn.
    pub depends_on: Vec<Box<str>>,
    /// Whether a turn cannot do without it.
    pub required: bool,
    /// What its dependents get if it fails.
    pub default_value: Option<Json>,
    /// Tools that can stand in for it, best first.
    pub alternatives: Vec<Box<str>>,
    /// Which calls a turn starts first.
    pub priority: Priority,
    /// Whether its answers are looked into for failures that look like answers, such as
    /// `{"exitCode": 1}`; true by default.
    pub silent_failures: bool,
    /// Whether `null` is the success of a tool that has nothing to say; by default it is a failure.
    pub null_is_success: bool,
    /// Names of params and result fields whose values no log, span or admin page may show: telemetry
    /// takes them out of all that it tells of a call, messages of errors included.
    pub sensitive: Vec<Box<str>>,
    /// The params that say what is wanted, such as an order's number: calls that agree in all of them are one call for the
    /// life of its record, whatever else they say. A call that has them all is recognized by them, unless its caller
    /// gives a key. With other params it is a conflict, except after a failure: then it runs.
    pub identity: Vec<Pointer>,
    /// The param by which the tool itself recognizes a repeat. `tool-guard mcp` leaves it out of digests, puts a key there if
    /// it is absent, and sends it again if the call comes again while its outcome is unknown.
    pub server_key: Option<Pointer>,
    /// How long after a call the tool recognizes its repeat; 24 hours by default.
    pub server_key_ttl: Duration,
    /// How long after a success `tool-guard` gives an equal call of the same conversation its answer: the model may ask again
    /// since it has not read it. Not at all by default.
    pub late: Option<Duration>,
    /// How a tool that only reads shows whether a call ran whose outcome is unknown; `tool-guard mcp` asks it.
    pub check: Option<OutcomeCheck>,
    /// Params whose values the records of its calls show to a person who settles one. A program that makes the calls puts
    /// them into [`about`](crate::call::IdempotencyParts::about).
    pub shown_in_records: Vec<Pointer>,
    /// [`input_schema`](Self::input_schema), compiled by the first call that is checked.
    #[cfg(feature = "input-schema")]
    compiled: Compiled,
}

/// A schema that is compiled once for all who share a manifest. A copy of the manifest may be given
/// another schema, so it compiles its own.
#[cfg(feature = "input-schema")]
#[derive(Default)]
struct Compiled(OnceLock<Result<InputSchema, InvalidSchema>>);

#[cfg(feature = "input-schema")]
impl Clone for Compiled {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(feature = "input-schema")]
impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Compiled" } else { "Uncompiled" })
    }
}

/// Something that a tool can do or not, to be asked for before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Answers in chunks.
    Streaming,
    /// Deduplicates by the key that it is handed.
    Idempotency,
    /// Its answers may be cached.
    Caching,
    /// Retries by itself: leave it alone.
    OwnRetries,
}

/// A tool's changes to loop detection.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LoopOverride {
    /// Identical failing calls that end it.
    pub max_identical: Option<u32>,
    /// Failures of any kind in a turn after which this tool is not called any more.
    pub max_failures_per_turn: Option<u32>,
    /// Calls of this tool in a turn, after which it is not called any more.
    pub calls_per_turn: Option<u32>,
    /// The same in a session.
    pub calls_per_session: Option<u32>,
    /// Identical calls with one answer that are remarked.
    pub repeats: Option<u32>,
    /// Identical calls are polling, not a loop; `None` means that they are a loop.
    pub poll: Option<bool>,
    /// The params that make a call's identity; all of them where it is `None`.
    pub loop_key: Option<Vec<Box<str>>>,
}

impl ToolManifest {
    /// A tool of which nothing is known.
    #[must_use]
    pub fn new(tool: impl Into<ToolId>) -> Self {
        Self {
            tool: tool.into(),
            effect: None,
            capabilities: Vec::new(),
            input_schema: None,
            timeout: None,
            idle_timeout: None,
            retry: None,
            retry_safe: None,
            cancellable: false,
            breaker: BreakerOverride::default(),
            breaker_hint: None,
            loops: LoopOverride::default(),
            ttls: TtlOverride::default(),
            classification: Vec::new(),
            not_run: Vec::new(),
            rules: Rules::default(),
            scope: DedupeScope::default(),
            dependency: None,
            depends_on: Vec::new(),
            required: false,
            default_value: None,
            alternatives: Vec::new(),
            priority: Priority::default(),
            silent_failures: true,
            null_is_success: false,
            sensitive: Vec::new(),
            identity: Vec::new(),
            server_key: None,
            server_key_ttl: Duration::from_secs(24 * 3_600),
            late: None,
            check: None,
            shown_in_records: Vec::new(),
            #[cfg(feature = "input-schema")]
            compiled: Compiled::default(),
        }
    }

    /// Checks params against the tool's [`input_schema`](Self::input_schema), if it has one. The
    /// first check compiles the schema.
    ///
    /// ```
    /// use tr_core::{Json, Params, ToolManifest};
    ///
    /// let mut read = ToolManifest::new("read");
    /// read.input_schema = Some(Json::from_text(r#"{"required": ["path"]}"#)?);
    /// let error = read.check(&Params::empty_object()).unwrap_err();
    /// assert_eq!(error.to_string(), "Missing required parameter: path");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Names every fault with its JSON pointer; or says that the schema itself is none. The tool did
    /// not run.
    #[cfg(feature = "input-schema")]
    pub fn check(&self, params: &crate::Params) -> Result<(), InvalidParams> {
        match self.schema() {
            None => Ok(()),
            Some(Ok(schema)) => schema.check(params),
            Some(Err(error)) => Err(InvalidParams::no_schema(self.tool.label(), error)),
        }
    }

    /// The schema, compiled; `None` if there is none. The first call compiles it.
    #[cfg(feature = "input-schema")]
    pub fn schema(&self) -> Option<&Result<InputSchema, InvalidSchema>> {
        let schema = self.input_schema.as_ref()?;
        Some(self.compiled.0.get_or_init(|| InputSchema::compile(schema)))
    }

    /// Whether it can do this.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Whether to answer this call in chunks: the caller would like it, and the tool can.
    #[must_use]
    pub fn streams_for(&self, hints: &CallHints) -> bool {
        hints.prefer_streaming && self.can(Capability::Streaming)
    }

    /// Under which the answer of this call may be cached: the caller named a key, and the tool
    /// only reads and allows it.
    #[must_use]
    pub fn cache_key_of<'h>(&self, hints: &'h CallHints) -> Option<&'h str> {
        let allowed = self.can(Capability::Caching) && self.effect == Some(Effect::ReadOnly);
        hints.cache_key.as_deref().filter(|_| allowed)
    }
}
