//! The contract between an agent's tool calls and the layers that guard them.

pub mod canonical;
