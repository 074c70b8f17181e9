//! `tool-guard serve`: envelopes over HTTP, or as lines on standard input and output, in front of tools that
//! are HTTP endpoints or commands.
mod access;
mod events;
mod guard;
mod lines;
mod listener;
mod options;
mod run;
mod upstream;
mod wire;

pub(crate) use self::{options::Options, run::run};
