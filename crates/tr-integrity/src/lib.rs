//! Keeps an agent's session valid, whatever happens to its tool calls.
