//! The contract between an agent's tool calls and the layers that guard them.
//!
//! A layer reads its request through a [`RequestPolicy`] and its response through a
//! [`ResponsePolicy`]. It reports the end of a call as a [`Verdict`] and as [`Ran`], whether the tool
//! ran; every error carries both in its [`FailureInfo`]. [`ToolCall`] and [`ToolOutcome`] are the
//! request and the response that [`DefaultPolicy`] reads; [`policy`] says how to use types of your own.
//!
//! # When to use
//!
//! With any of the layer crates, to implement a policy for your own types and to read their errors.
//! Alone, for classifying errors and for canonical JSON.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `http`: [`DefaultPolicy`] answers for `http::Request` and `http::Response`.
//! - `hyper-util`: with `http`, the connect errors of its client are known as such: the request was
//!   not sent.
//! - `h2`: beside it, so is a request whose stream the server refused (`REFUSED_STREAM`).
//! - `input-schema`: params are checked against the JSON Schema in their tool's manifest.
//! - `interchange`: keys by the SHA-256 formula of others, for systems that already use it.
//! - `keys`: hashes, for digests of params, idempotency keys and fingerprints; the layers that need them
//!   turn it on.
//! - `tower`: the refusal of its `load_shed` is known as such: nothing ran.
//!
//! # Knows nothing of
//!
//! layers, an async runtime, exporters, stores, files, the forms of calls on the wire.
//! It takes [`std::time::Instant`] as a value and never reads a monotonic clock.
pub mod call;
mod cancellation;
pub mod canonical;
pub mod chunks;
pub mod classify;
mod clock;
pub mod code;
mod config_error;
#[cfg(feature = "conformance")]
#[doc(hidden)]
pub mod conformance;
mod dedupe_key;
mod error;
#[doc(hidden)]
pub mod internal;
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
mod shorten;
mod status;
mod tool;
mod verdict;

pub use self::{
    call::{CallParts, ToolCall},
    cancellation::Cancellation,
    classify::ran,
    clock::{SetClock, SystemClock, WallClock, rfc3339},
    config_error::ConfigError,
    dedupe_key::{DedupeKey, FencingToken},
    error::{BoxError, FailureInfo, causes, failure_info, find, root_cause},
    manifest::{Capability, ToolManifest},
    not_sent::NotSent,
    observer::{CallInfo, Event, Observer, Sensitive, SessionAction},
    one_line::one_line,
    outcome::{
        Chunk, MatchedOn, OutcomeParts, Pieces, Replay, Retried, SplitContent, ToolError,
        ToolOutcome,
    },
    overrides::{
        BreakerHint, BreakerState, DedupeMode, DedupeScope, Priority, RetryOverride, RetryOverrides,
    },
    params::{Json, Params},
    policy::{
        Adapted, Answer, AsJson, CloneRequest, CycleRef, DefaultPolicy, Derive, End, InvalidKey,
        LoopPolicy, LoopRef, NamedPolicy, PolicyExt, RecordRef, RequestPolicy, ResponsePolicy,
        StoreResponse, TranscriptPolicy, TurnRef,
    },
    printable::{printable, printable_json, printable_lines},
    shorten::{shortened, shortened_code},
    status::Status,
    tool::{KeyRef, ToolId},
    verdict::{Classification, Effect, Ran, Verdict},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
