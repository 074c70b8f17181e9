//! `tool-guard mcp`: a guard between MCP clients, on standard input and output or over HTTP, and one server.
mod http;
mod run;

pub(crate) use self::run::run;
pub(crate) use crate::engine::options::Options;
