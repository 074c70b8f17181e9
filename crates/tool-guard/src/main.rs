//! Puts the reliability stack in front of any MCP server.

fn main() {}
