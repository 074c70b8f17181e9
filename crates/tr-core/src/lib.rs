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
//! - `tonic`: its `Status`, as an error, is known by its code whatever the policy.
//! - `tower`: the refusal of its `load_shed` is known as such: nothing ran.
//!
//! # Knows nothing of
//!
//! layers, an async runtime, exporters, stores, files, the forms of calls on the wire.
//! It takes [`std::time::Instant`] as a value and never reads a monotonic clock.
pub mod call;
pub mod canonical;
pub mod chunks;
pub mod classify;
#[cfg(feature = "conformance")]
#[doc(hidden)]
pub mod conformance;
#[doc(hidden)]
pub mod internal;
pub mod manifest;
mod not_sent;
mod one_line;
mod outcome;
mod overrides;
mod params;
pub mod policy;
mod printable;
mod shorten;
mod status;
mod when_store_fails;

pub use self::{
    call::{CallParts, ToolCall},
    classify::ran,
    manifest::{Capability, ToolManifest},
    not_sent::NotSent,
    one_line::one_line,
    outcome::{Chunk, OutcomeParts, Pieces, SplitContent, ToolError, ToolOutcome},
    overrides::{BreakerHint, Priority},
    params::{Json, Params},
    policy::{
        Answer, AsJson, CycleRef, LoopPolicy, LoopRef, StoreResponse, TranscriptPolicy, TurnRef,
    },
    printable::{printable, printable_json, printable_lines},
    shorten::{shortened, shortened_code},
    status::Status,
    when_store_fails::WhenStoreFails,
};
pub use tr_policy::{
    Adapted, BoxError, BreakerState, CallInfo, Cancellation, Classification, CloneRequest,
    ConfigError, DedupeKey, DedupeMode, DedupeScope, DefaultPolicy, Derive, Effect, End, Event,
    FailureInfo, FencingToken, InvalidKey, KeyRef, MatchedOn, NamedPolicy, Observer, PolicyExt,
    Ran, RecordRef, Replay, RequestPolicy, ResponsePolicy, Retried, RetryOverride, RetryOverrides,
    Sensitive, SessionAction, SetClock, SystemClock, ToolId, Verdict, WallClock, causes, code,
    failure_info, find, rfc3339, root_cause,
};
#[doc(hidden)]
pub use tr_policy::{debug_parts, reading, setters};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
