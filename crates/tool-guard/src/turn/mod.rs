//! `tool-guard turn`: runs a plan of tool calls against an MCP server, through the whole stack.
mod client;
mod keys;
mod options;
mod run;
mod tool;

pub(crate) use self::{
    client::Client,
    keys::Keys,
    options::Options,
    run::{Run, play, run},
};
