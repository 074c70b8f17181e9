//! `tool-guard mcp`: a proxy between an MCP client on standard input and output and the MCP server that it
//! starts.
pub(crate) mod answer;
mod attribution;
mod backend;
pub(crate) mod batch;
pub(crate) mod call;
mod child;
mod command;
pub(crate) mod connection;
pub(crate) mod effects;
mod elements;
mod equal_calls;
pub(crate) mod failure;
pub(crate) mod guard;
pub(crate) mod guessed;
mod http;
pub(crate) mod http_names;
mod http_options;
pub(crate) mod identity;
pub(crate) mod in_flight;
mod limits;
mod line_reader;
pub(crate) mod lines;
pub(crate) mod log;
pub(crate) mod mark;
pub(crate) mod message;
mod mirrored;
mod notes;
mod one_client;
pub(crate) mod operation;
pub(crate) mod operator;
pub(crate) mod options;
mod out;
pub(crate) mod params;
mod pipes;
mod presence;
pub(crate) mod private;
pub(crate) mod proxy;
mod pump;
mod record_file;
pub(crate) mod recording;
pub(crate) mod records;
mod remote;
mod restart;
mod run;
mod scan;
pub(crate) mod server;
pub(crate) mod setup;
pub(crate) mod signals;
pub(crate) mod stdio;
pub(crate) mod stores;
mod timeout_sweeper;
mod tool;
mod unknowns;
pub(crate) mod until;
mod unusable;
pub(crate) mod upstream;
mod warnings;
mod watching;

pub(crate) use self::{
    effects::Effects,
    line_reader::LineReader,
    lines::Item,
    options::{Mode, Options, Overrides, address},
    run::run,
    server::Server,
    setup::read_config,
};
