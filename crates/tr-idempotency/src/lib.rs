//! Runs a tool call once per idempotency key and answers its duplicates from a record.
//!
//! The first call with a key runs; its duplicates wait for it or get its response from the record.
//! A call whose caller goes away runs to its end in a task. The layer never runs a mutating call
//! again while its outcome is unknown. [States](#states) says which calls run again: those that did
//! not run, and some that change nothing.
//!
//! # When to use
//!
//! Wherever calls repeat: clients that retry or reconnect, models that ask twice, workflows that
//! resume. Put the layer around retries (one claim covers all attempts) and inside loop detection
//! (which counts replays too). Records live in this process and die with it, unless a [`store`]
//! keeps them: a store outlives the process, and several processes may share it.
//!
//! # Example
//!
//! ```
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//! use tr_core::{Params, ToolCall, ToolOutcome, BoxError};
//! use tr_idempotency::IdempotencyLayer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
//! let layer = IdempotencyLayer::builder().build()?;
//! let records = layer.handle();
//! let mut pay = ServiceBuilder::new().layer(layer).service(service_fn(|_: ToolCall| async {
//!     Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!("paid")))
//! }));
//!
//! let call = ToolCall::new("pay", Params::from_text(r#"{"amount": 5}"#)?)
//!     .session("s-1")
//!     .idempotency_key("order-42");
//! assert!(!pay.ready().await?.call(call.clone()).await?.from_cache());
//! assert!(pay.ready().await?.call(call).await?.from_cache());
//! assert_eq!(records.counts().records, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # States
//!
//! | a call that … | is recorded as | for | a duplicate |
//! |---|---|---|---|
//! | runs | `inflight` | 2 min, renewed | waits within its own deadline, for 30 s at most (`enforced`), gets the in-flight marker (`bestEffort`), runs (`disabled`) |
//! | succeeded | `done` | 24 h | gets the same response |
//! | failed | `failed` | 5 min; 24 h for a mutating call that ran | gets the same failure; runs, if its mode is `bestEffort`, the failure is transient and the tool is not mutating |
//! | failed for a passing reason before it ran ([`Ran::No`](tr_core::Ran::No): an open breaker, a request that was not sent) | `failed` | 5 min | runs |
//! | was cancelled before it ran | `cancelled` | 5 min | runs |
//! | may have run, with an outcome that was not recorded: a mutating call that timed out; any that panicked or was lost | `unknown` | 24 h | gets `outcome_unknown` until the record is [settled](Handle::settle); runs, if the tool is not mutating |
//!
//! In every state a duplicate with other params is a conflict ([`ConflictPolicy`]). Where several
//! duplicates may run, exactly one does, and the others wait for it.
//!
//! # Stores
//!
//! | | | |
//! |---|---|---|
//! | none | this process's tables | fastest |
//! | `sqlite::Sqlite` (feature `sqlite`) | a file, shared by the processes of one machine | outlives the process |
//! | `redis::Redis` (feature `redis`) | a server, shared by machines | outlives them |
//! | [`store::Memory`] | for tests | |
//! | your own | [`RecordStore`](store::RecordStore), and the `conformance` suite | |
//!
//! With a store, a call is claimed there before it runs, keeps its lease while it runs, and is
//! recorded there before any caller gets the response. The process's own tables stay in front of
//! the store: per key, one caller sends the claim, and one watches for another process's result.
//! When the store is unavailable, mutating calls are refused and all others run
//! ([`Builder::when_store_fails`]). A tool sees its claim as
//! [`ToolCall::fencing_token`](tr_core::ToolCall::fencing_token). Keys that only join cut-off calls
//! ([`DerivedKeys::CutOff`]) stay in their process.
//!
//! # Errors
//!
//! See [`error`]: each says whether the tool ran. A failure of the inner service reaches every
//! caller that shares the call as a [`SharedFailure`](error::SharedFailure), whose sources lead to
//! it.
//!
//! # Defaults
//!
//! 25,000 records; 1 MiB per stored response and 64 MiB for all that this process keeps; 1,024
//! waiters per call, each for 30 s at most; conflicts rejected; keys derived by step, or else only
//! for calls that were cut off ([`DerivedKeys`]); no store, and 1 s per request to one. The times
//! to live are those of the table above, or those of the tool's manifest.
//!
//! # Cancellation
//!
//! A response future that is dropped before the tool can have started passes its claim to the
//! longest waiter, or leaves no record. Dropped later, it moves to a task of the current tokio
//! runtime; without a runtime it ends and leaves `unknown`. A call without a key, or with
//! `disabled`, ends with its caller. [`Handle::cancel`] cancels a call whether or not its caller
//! still waits.
//!
//! With a store, a claim that may have been granted is released in a task of the current runtime;
//! without a runtime, its lease ends and leaves `unknown`.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `sqlite`, `redis`: stores that outlive the process; `redis-tls`: `rediss://` addresses.
//! - `bytes`: stores keep responses that are `bytes::Bytes`.
//! - `encryption`: encrypts responses, errors and request notes in the store.
//! - `conformance`: the rules for stores, as a test suite.
//!
//! # Knows nothing of
//!
//! retries, breakers, timeouts (they are inner layers, under one claim), transcripts, exporters. It
//! never starts a call on its own, and never reads params.
mod bounds;
mod builder;
mod claim;
mod clock;
mod codec;
mod config;
#[cfg(feature = "conformance")]
pub mod conformance;
mod end;
pub mod error;
mod failure;
mod handle;
mod janitor;
mod layer;
mod local;
pub mod protocol;
mod record;
#[cfg(feature = "redis")]
pub mod redis;
mod remote;
mod run;
mod service;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod store;
mod store_handle;

pub use self::{
    bounds::{Answers, Detachable},
    builder::Builder,
    config::{ConflictPolicy, DerivedKeys},
    end::Settlement,
    handle::{Counts, Filter, Handle, NotUnknown, Resolution},
    janitor::Janitor,
    layer::IdempotencyLayer,
    record::{
        Attempt, DedupeRecord, Execution, RecordState, RecordedError, RequestNotes, StateCount,
    },
    service::{Idempotency, IdempotencyFuture},
    store_handle::{LateEnd, MayStillRun, RecordListing, StoreHandle},
};
pub use tr_core::ConfigError;

/// Future types.
pub mod future {
    pub use crate::service::IdempotencyFuture;
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
