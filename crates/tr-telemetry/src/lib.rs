//! Events, metrics and spans of tool calls.
