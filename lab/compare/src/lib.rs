//! The peers at the work of `benches`, and what the smallest MCP servers answer.
pub mod echo;
pub mod peers;
