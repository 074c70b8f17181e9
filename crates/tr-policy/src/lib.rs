//! How tower layers read requests and responses, whatever their types, and what the ends of calls mean.
//!
//! A layer reads its request through a [`RequestPolicy`] and its response through a
//! [`ResponsePolicy`]. It reports the end of a call as a [`Verdict`] and as [`Ran`], whether the call
//! ran; every error carries both in its [`FailureInfo`]. [`policy`] says how to use types of your own.
//!
//! # When to use
//!
//! With a layer crate such as `tr-retry` or `tr-breaker`, to implement a policy for your own types and to read
//! their errors. `tr-core` has all of this, too, and the calls and outcomes of agents' tools.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `http`: [`DefaultPolicy`] answers for `http::Request` and `http::Response`.
//! - `hyper-util`: with `http`, the connect errors of its client are known as such: the request was
//!   not sent.
//! - `h2`: beside it, so is a request whose stream the server refused (`REFUSED_STREAM`).
//! - `keys`: hashes, for digests of params, idempotency keys and fingerprints.
//! - `tonic`: its `Status`, as an error, is known by its code.
//! - `tower`: the refusal of its `load_shed` is known as such: nothing ran.
//!
//! # Knows nothing of
//!
//! layers, an async runtime, exporters, stores, JSON, agents' tools, the words of error messages.
//! It takes [`std::time::Instant`] as a value and never reads a monotonic clock.
mod cancellation;
pub mod classify;
mod clock;
pub mod code;
mod config_error;
mod dedupe_key;
mod error;
mod history;
#[doc(hidden)]
pub mod internal;
pub mod keys;
mod observer;
#[doc(hidden)]
pub mod origin;
mod overrides;
pub mod policy;
mod tool;
mod verdict;

pub use self::{
    cancellation::Cancellation,
    clock::{SetClock, SystemClock, WallClock, rfc3339},
    config_error::ConfigError,
    dedupe_key::{DedupeKey, FencingToken},
    error::{BoxError, FailureInfo, causes, failure_info, find, root_cause},
    history::{MatchedOn, Replay, Retried},
    observer::{CallInfo, Event, Observer, Sensitive, SessionAction},
    overrides::{
        BreakerOrder, BreakerOverride, BreakerState, DedupeMode, DedupeScope, RetryOverride,
        RetryOverrides, TtlOverride,
    },
    policy::{
        Adapted, CloneRequest, DefaultPolicy, Derive, End, InvalidKey, NamedPolicy, PolicyExt,
        RecordRef, RequestPolicy, ResponsePolicy,
    },
    tool::{KeyRef, ToolId},
    verdict::{Classification, Effect, Ran, Verdict},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
