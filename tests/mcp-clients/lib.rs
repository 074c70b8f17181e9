//! Drives clients that are written with MCP's SDKs, each a process of its own or `rmcp` in this one.

pub mod play;
pub mod process;
mod rust;
pub mod sdk;
