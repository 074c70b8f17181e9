//! From an error to a verdict: pure tables, one module for each source.
//!
//! Every function returns a [`Finding`]: the [`Classification`](crate::Classification) that layers
//! use, and the reason in one sentence. Nothing here allocates, and only a bounded part of a
//! message is read. The tables stand in `docs/classification.md`.
//!
//! # When to use
//!
//! In an adapter, where a tool's failure first comes to light ([`stamp`] it there, with the tool's
//! manifest), and whenever you write a [`ResponsePolicy`](crate::ResponsePolicy) of your own.
//!
//! ```
//! use tr_core::{ToolError, ToolManifest, Verdict, classify};
//!
//! let error = ToolError::new("error", "Service unavailable (503)");
//! let found = classify::tool_error(&error);
//! assert_eq!((found.end.verdict, found.end.code), (Verdict::TRANSIENT, "service_unavailable"));
//!
//! let mut tool = ToolManifest::new("custom_api");
//! tool.classification = vec![("503".into(), Verdict::Permanent)];
//! assert_eq!(found.with_manifest(&tool).end.verdict, Verdict::Permanent);
//! ```
//!
//! # What the answers mean
//!
//! - **Transient**: another attempt may succeed. A Rust error that nothing matches is transient too, with the
//!   code `unclassified`. A failure that a tool answers is final, unless it says otherwise.
//! - **[`Ran::No`](crate::Ran::No)** takes evidence about this very call: an outermost
//!   [`NotSent`](crate::NotSent), refusal of tower's `load_shed` or error of our own layers; the
//!   status 425 or 429 of the response itself; what the tool says in [`ToolError::ran`]. Words,
//!   codes and error numbers never say it: a tool that has acted may fail with any of them. Directly
//!   out of a [tool function](tool_function), an error of a layer does not say it either.
//! - A refusal (400, 401, 403, 404, 413, 422 and their like) is an answer: the attempt ended, so
//!   [`Ran::Yes`](crate::Ran::Yes). A transient finding never says `Yes`, unless the error itself
//!   does.
//!
//! A tool that does several things in one call knows better than any table whether it ran: it
//! sets [`ToolError::ran`].
//!
//! [`ToolError::ran`]: crate::ToolError::ran
mod chain;
#[cfg(feature = "http")]
mod client;
mod deterministic;
mod errno;
mod exception;
mod finding;
mod grpc;
mod http;
mod message;
mod phrases;
mod provider;
mod rpc_code;
mod scan;
mod sqlstate;
mod status_text;
mod tables;
mod tool_error;
mod words;

#[cfg(feature = "http")]
pub use self::client::http_error;
#[cfg(feature = "keys")]
pub(crate) use self::tool_error::json_rpc_code;
pub use self::{
    chain::{error, ran, tool_function},
    deterministic::{is_deterministic, provider_of},
    errno::errno,
    finding::Finding,
    grpc::grpc,
    http::http_response,
    message::message,
    tables::tables,
    tool_error::{json_rpc, mcp_is_error, stamp, tool_error},
};
pub use tr_policy::classify::{Kind, reason, retry_after};
