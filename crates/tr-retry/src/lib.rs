//! Tries a tool call again where that is safe.
