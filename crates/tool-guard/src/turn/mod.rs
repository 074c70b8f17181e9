//! `tool-guard turn`: runs a plan of tool calls against an MCP server, through the whole stack.
mod client;
mod options;
mod run;
mod tool;

pub(crate) use self::{
    client::Client,
    options::Options,
    run::{play, run},
};
