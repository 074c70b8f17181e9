//! `tool-guard mcp`: stands between an MCP client on standard input and output and the MCP server
//! that it starts.
mod admin;
pub(crate) mod answer;
mod call;
mod effects;
mod flights;
mod line_reader;
mod lines;
pub(crate) mod message;
mod options;
mod out;
mod patrol;
mod proxy;
mod run;
mod scan;
pub(crate) mod server;
mod setup;
mod signals;
mod stack;
mod stdio;
mod tool;

pub(crate) use self::{
    effects::Effects,
    line_reader::LineReader,
    lines::Item,
    options::{Mode, Options},
    run::run,
    server::Server,
    stack::read_catalog,
    stdio::{Input, Output},
};
