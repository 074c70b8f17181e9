//! From an error or a status to a verdict, by what has a type or a code: never by the words of a message.
//!
//! Nothing here allocates.
//!
//! - **Transient**: another attempt may succeed. A Rust error that nothing is known of is transient too, with
//!   the code `unclassified`, whatever its message says.
//! - **[`Ran::No`](crate::Ran::No)** takes evidence about this very call: an outermost error of our own
//!   layers or refusal of tower's `load_shed`; the status 425 or 429 of the response itself.
//! - A refusal (400, 401, 403, 404, 413, 422 and their like) is an answer: the attempt ended, so
//!   [`Ran::Yes`](crate::Ran::Yes).
//!
//! `classify` of `tr-core` reads messages, too, for tools that say what failed in words alone.
mod chain;
#[cfg(feature = "http")]
mod client;
mod grpc;
mod http;
mod io;
mod kind;
pub mod reason;
mod retry_after;

#[cfg(feature = "http")]
pub use self::client::{http_error, was_not_sent};
pub use self::{
    chain::error, grpc::grpc, http::http_response, kind::Kind, retry_after::retry_after,
};
#[doc(hidden)]
pub use self::{
    chain::{is_load_shed, said_by_layer},
    grpc::CODES as GRPC,
    http::status as http_status,
    io::io_kind,
};
