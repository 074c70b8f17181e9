//! Runs a tool call once, however often it is asked for.
