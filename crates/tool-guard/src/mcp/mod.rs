//! `tool-guard mcp`: stands between an MCP client on standard input and output and the MCP server
//! that it starts.
mod answer;
mod call;
mod effects;
mod flights;
mod line_reader;
mod lines;
mod message;
mod options;
mod out;
mod proxy;
mod run;
mod scan;
mod server;
mod stack;
mod stdio;
mod tool;

pub(crate) use self::{
    line_reader::LineReader,
    lines::Item,
    options::{Mode, Options},
    run::run,
    stdio::{Input, Output},
};
