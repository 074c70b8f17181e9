//! `tool-guard turn`: runs a plan of tool calls against an MCP server, through the whole stack.
//!
//! `options` is the command line and `run` the command; `client` is the MCP client, `tool` makes it a tower
//! service, `keys` gives the calls their idempotency keys. `demo/` plays its last scene with the same parts.
mod client;
mod keys;
mod options;
mod run;

pub(crate) use self::{
    client::{Client, hello},
    keys::Keys,
    options::Options,
    run::{Run, play, run},
};
