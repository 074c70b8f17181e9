//! The envelopes of UTEE, the Unified Tool Execution Envelope: requests to run a tool's action,
//! responses, and their options.
//!
//! ```
//! use tr_core::call::CallContext;
//! use tr_wire::utee::ToolRequest;
//!
//! let request = ToolRequest::read(
//!     r#"{"tool": "exec", "action": "run", "params": {"command": "git status"}, "timeout": 5000}"#,
//! )?;
//! let call = request.into_call(CallContext::default(), || "r-1".into())?;
//! assert_eq!(call.parts().tool.label(), "exec.run");
//! assert_eq!(call.parts().request_id.as_deref(), Some("r-1"));
//! # Ok::<_, tr_wire::InvalidEnvelope>(())
//! ```
mod options;
mod request;
mod response;

pub(crate) use self::options::CallParams;
pub use self::{
    options::{Options, RetryPolicy},
    request::{Hints, ToolRequest, bare_call},
    response::{Failure, ResponseStatus, ToolResponse},
};
