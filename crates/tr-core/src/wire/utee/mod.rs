//! The envelopes of UTEE.
//!
//! ```
//! use tr_core::{call::CallContext, wire::utee::ToolRequest};
//!
//! let request = ToolRequest::read(
//!     r#"{"tool": "exec", "action": "run", "params": {"command": "git status"}, "timeout": 5000}"#,
//! )?;
//! let call = request.into_call(CallContext::default(), || "r-1".into())?;
//! assert_eq!(call.parts().tool.label(), "exec.run");
//! assert_eq!(call.parts().request_id.as_deref(), Some("r-1"));
//! # Ok::<_, tr_core::wire::InvalidEnvelope>(())
//! ```
mod from_outcome;
mod into_call;
mod into_outcome;
mod options;
mod request;
mod response;
mod retry_policy;

pub(crate) use self::retry_policy::jitter;
pub use self::{
    into_call::bare_call,
    options::Options,
    request::{Hints, ToolRequest},
    response::{Failure, ResponseStatus, ToolResponse},
    retry_policy::RetryPolicy,
};
