//! Tool calls and their results as JSON: the envelopes of BS-TIM-5 v1.1 and of UTEE.
//!
//! Reading is lossless: members that a form does not know are kept, and params and content stay
//! the text that came. Reading is also thorough: what does not have its form is refused with the
//! JSON pointer of every fault at once.
//!
//! # When to use
//!
//! Where calls enter as JSON and results leave as JSON. Inside, everything is a
//! [`ToolCall`](tr_core::ToolCall) and a [`ToolOutcome`](tr_core::ToolOutcome).
//! [`Normaliser`] turns what a tool gave into an outcome, whatever way the tool has of failing.
//! A stack of `tool-reliability` does this for each answer.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tr_core::{Json, ToolOutcome, call::CallContext};
//! use tr_wire::utee;
//!
//! let request = utee::ToolRequest::read(r#"{"tool": "clock", "action": "", "params": {}}"#)?;
//! let call = request.into_call(CallContext::default(), || "r-1".into())?;
//!
//! let outcome = ToolOutcome::success(Json::from_text("12")?);
//! let response = utee::ToolResponse::of(&call, Ok(&outcome), Duration::from_millis(3));
//! assert_eq!(
//!     response.to_json().get(),
//!     r#"{"requestId":"r-1","status":"success","result":12,"durationMs":3}"#,
//! );
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is read, beyond the documents' letter
//!
//! - `null` for an optional member is as good as its absence.
//! - A whole number may be written `5000.0` or `5e3`. Settings in milliseconds must be whole;
//!   measured times may have fractions. Nothing is negative, a timeout is at least 1 ms, there are
//!   1 to 1000 attempts.
//! - `dedupeMode: "enabled"` means `"enforced"`, and is written so.
//! - Members that a form does not know are kept, and written after those it knows.
//!
//! # Errors
//!
//! [`InvalidEnvelope`] is terminal, and the tool did not run: `Permanent`, `Ran::No`,
//! `invalid_envelope`.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `schema`: the JSON Schemas of the envelopes.
//! - `toml`: for `tr-config`, which reads its files with the readers of this crate.
//!
//! # Knows nothing of
//!
//! layers, files, an async runtime. It takes [`std::time::Instant`] as a value and reads no clock.
/// How an envelope is read, with what is an error in it, and written.
macro_rules! envelope {
    ($strictness:ident $(#[doc = $errors:literal])* $name:ident) => {
        impl $name {
            /// Reads an envelope.
            ///
            /// # Errors
            $(#[doc = $errors])*
            pub fn read(json: impl AsRef<[u8]>) -> Result<Self, crate::InvalidEnvelope> {
                let strictness = crate::read::Strictness::$strictness;
                crate::read::document::<Self>(stringify!($name), json.as_ref(), strictness)
            }

            /// The envelope as JSON.
            #[must_use]
            pub fn to_json(&self) -> tr_core::Json {
                tr_core::Json::from_value(self).expect("names are strings")
            }
        }
    };
}

mod arrival;
pub mod bs_tim_5;
mod extra;
mod fault;
mod normalise;
mod outcome;
#[doc(hidden)]
pub mod read;
mod request;
#[cfg(feature = "schema")]
pub mod schemas;
mod suggest;
pub mod utee;

pub use self::{
    arrival::{Arrival, uuid_v7},
    extra::Extra,
    fault::{EnvelopeFault, InvalidEnvelope},
    normalise::{EMPTY_RESULT, NONZERO_EXIT, NOT_OK, Normaliser, thrown},
    request::{Form, RefusedRequest, Request},
    suggest::closest,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
