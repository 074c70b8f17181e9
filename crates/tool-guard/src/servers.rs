//! Connections to servers: processes on pipes, and servers at an address. They know no door.
pub(crate) mod behind;
pub(crate) mod child;
pub(crate) mod command;
pub(crate) mod connection;
pub(crate) mod endpoint;
pub(crate) mod pipes;
pub(crate) mod process;
pub(crate) mod remote;
mod restart;
pub(crate) mod upstream;
