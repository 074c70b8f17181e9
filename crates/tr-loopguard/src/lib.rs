//! Breaks loops of failing tool calls.
