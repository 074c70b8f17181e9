//! The policy of layers that are given none.

/// The policy for [`ToolCall`](crate::ToolCall) and `http::Request`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultPolicy;
