//! Connections of those who call: on standard input and output, over HTTP, and hosts that run their tools. They know no
//! server.
pub(crate) mod host;
pub(crate) mod http;
pub(crate) mod pump;
pub(crate) mod stdio;
