//! The policy of layers that are given none.

/// The policy for `ToolCall` of `tr-core` and for `http::Request`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultPolicy;
