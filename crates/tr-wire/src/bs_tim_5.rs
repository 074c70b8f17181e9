//! The envelopes of BS-TIM-5, version 1.1.
//!
//! ```
//! use tr_wire::bs_tim_5::ToolCallEnvelope;
//!
//! let text = r#"{
//!     "contractVersion": "1.1", "requestId": "r-1", "toolName": "search", "toolNamespace": "web",
//!     "target": {"sessionKey": "s-1", "actorId": "ada"},
//!     "payload": {"version": "1.0", "params": {"q": "rust"}},
//!     "transport": {"dedupeMode": "enforced", "retryBudget": {"maxAttempts": 4, "maxElapsedMs": 30000}},
//!     "control": {}, "trace": {}
//! }"#;
//! let envelope = ToolCallEnvelope::read(text)?;
//! assert_eq!(envelope.transport.retry_budget.max_attempts, 4);
//!
//! let refused = ToolCallEnvelope::read(text.replace(r#""toolName": "search""#, r#""tool": 1"#));
//! assert_eq!(
//!     refused.unwrap_err().to_string(),
//!     "invalid ToolCallEnvelope: /toolName: expected a non-empty string, found nothing",
//! );
//! # Ok::<_, tr_wire::InvalidEnvelope>(())
//! ```
mod call;
mod result;

pub use self::{
    call::{CallHints, Control, Payload, RetryBudget, Target, ToolCallEnvelope, Trace, Transport},
    result::{CacheHit, Failure, Output, RetriedBy, ToolResultEnvelope},
};
