//! Bounds one attempt of a tool call.
