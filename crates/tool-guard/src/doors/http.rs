//! MCP over Streamable HTTP in front: each call has an exchange of its own, whatever is behind it.
pub(crate) mod door;
mod exchange;
mod headers;
mod reply;
mod running;
mod sessions;
