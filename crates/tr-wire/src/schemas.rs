//! JSON Schemas of the envelopes, made from the same descriptions as their readers.
//!
//! A schema takes what its reader takes, but for two things that JSON Schema cannot say: that
//! names in an object must differ, and that params must have a canonical form.
use crate::{bs_tim_5, read::schema_of as of, utee};
use serde_json::Value;

/// Each schema and the name of its file in `schemas/`.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        of::<bs_tim_5::ToolCallEnvelope>("bs-tim-5-tool-call", "BS-TIM-5 v1.1 tool call"),
        of::<bs_tim_5::ToolResultEnvelope>("bs-tim-5-tool-result", "BS-TIM-5 v1.1 tool result"),
        of::<utee::ToolRequest>("utee-tool-request", "UTEE tool request"),
        of::<utee::ToolResponse>("utee-tool-response", "UTEE tool response"),
        of::<utee::RetryPolicy>("utee-retry-policy", "UTEE retry policy"),
        of::<utee::Options>("utee-options", "UTEE options beside a tool's params"),
    ]
}
