//! The contract between an agent's tool calls and the layers that guard them.
//!
//! A layer reads its request and its response through the small traits of [`policy`]. It reports the
//! end of a call as a [`Verdict`] and as [`Ran`], whether the tool ran; every error carries both in its
//! [`FailureInfo`]. [`ToolCall`] and [`ToolOutcome`] are the request and the response that
//! [`DefaultPolicy`] reads.
//!
//! # When to use
//!
//! With any of the layer crates, to implement a policy for your own types and to read their errors. Alone, for classifying errors, canonical JSON, or reading tool-call envelopes.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `http`: [`DefaultPolicy`] answers for `http::Request` and `http::Response`.
//! - `hyper-util`: with `http`, the connect errors of its client are known as such: the request was
//!   not sent.
//! - `h2`: beside it, so is a request whose stream the server refused (`REFUSED_STREAM`).
//! - `catalog`: catalogues and configurations in TOML; in JSON they are read without it.
//! - `input-schema`: params are checked against the JSON Schema in their tool's manifest.
//! - `interchange`: keys by the SHA-256 formula of others, for systems that already use it.
//! - `schema`: the JSON Schemas of the envelopes, the catalogue and the configuration.
//!
//! # Knows nothing of
//!
//! layers (except for the error of tower's `load_shed`, which means that nothing ran), an async runtime, exporters, stores.
//! It takes [`std::time::Instant`] as a value and never reads a monotonic clock.
pub mod call;
mod cancellation;
pub mod canonical;
pub mod catalog;
pub mod classify;
mod clock;
mod coarse_instant;
pub mod code;
pub mod config;
mod dedupe_key;
mod error;
pub mod graph;
pub mod manifest;
mod not_sent;
mod observer;
mod one_line;
mod origin;
mod outcome;
mod overrides;
mod params;
pub mod policy;
mod printable;
mod reached;
mod ready_on_call;
pub mod rollout;
#[cfg(feature = "schema")]
pub mod schemas;
mod sharded;
mod shorten;
mod stripe;
mod tool;
mod verdict;
pub mod wire;

pub use self::{
    call::{CallParts, ToolCall},
    cancellation::Cancellation,
    catalog::ToolCatalog,
    clock::{SetClock, SystemClock, WallClock, rfc3339},
    coarse_instant::CoarseInstant,
    dedupe_key::{DedupeKey, FencingToken},
    error::{BoxError, FailureInfo, causes, failure_info, find, root_cause},
    manifest::{Capability, ToolManifest},
    not_sent::NotSent,
    observer::{CallInfo, Event, Observer, Sensitive, SessionAction},
    one_line::one_line,
    outcome::{Chunk, MatchedOn, OutcomeParts, Replay, Retried, ToolError, ToolOutcome},
    overrides::{
        BreakerHint, BreakerState, DedupeMode, Priority, RetryOverride, RetryOverrides, Scope,
    },
    params::{Json, Params},
    policy::{
        Answer, AnswerOf, Classify, Codec, CycleOf, CycleRef, DefaultPolicy, Derive, EffectOf, End,
        Feedback, IdempotencyOf, InvalidKey, KeyOf, LoopOf, LoopRef, Progress, RecordRef, Repeat,
        TurnRef,
    },
    printable::{printable, printable_json, printable_lines},
    ready_on_call::{ReadyOnCall, ReadyOnCallFuture},
    sharded::{Held, Sharded},
    shorten::{shortened, shortened_code},
    stripe::{STRIPES, stripe},
    tool::{KeyRef, ToolId},
    verdict::{Classification, Effect, Ran, Verdict},
};
