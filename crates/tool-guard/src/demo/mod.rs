//! The demonstration, and the server whose tools fail in it.
mod server;

pub(crate) use self::server::{Options as ServerOptions, serve};
