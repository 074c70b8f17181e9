//! What the crates of this project share. It is no part of the public API: it changes in any version.
mod ready_on_call;

pub use self::ready_on_call::{ReadyOnCall, ReadyOnCallFuture};
pub use crate::shorten::ceil_char_boundary;
pub use tr_policy::internal::*;

use serde_json::Value;

/// The type of a value, as JSON Schema names it.
#[must_use]
pub const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
