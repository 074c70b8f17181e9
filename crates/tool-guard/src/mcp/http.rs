//! MCP over Streamable HTTP in front: each call has an exchange of its own, whatever is behind it.
mod behind;
mod door;
mod exchange;
mod headers;
mod reply;
mod run;
mod running;

pub(crate) use self::run::run;
