//! What the guard connects its clients to. Four modules are named by both sides: a client on standard input and output or
//! clients over HTTP, and a server that is a command or at an address. `endpoint` has the tools of `tool-guard serve`.
//!
//! The first two implement [`one_client::Server`](crate::engine::one_client::Server), the others
//! [`Backend`](crate::engine::server_event::Backend), and so would another kind of server. They know no door.
pub(crate) mod connection;
pub(crate) mod endpoint;
pub(crate) mod http_to_command;
pub(crate) mod http_to_http;
pub(crate) mod pipes;
pub(crate) mod process;
mod restart;
pub(crate) mod stdio_to_command;
pub(crate) mod stdio_to_http;
pub(crate) mod upstream;
