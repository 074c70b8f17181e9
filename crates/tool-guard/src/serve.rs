//! `tool-guard serve`: envelopes over HTTP, or as lines on standard input and output, in front of tools that
//! are HTTP endpoints or commands.
mod guard;
mod lines;
mod options;
mod run;
mod wire;

pub(crate) use self::{options::Options, run::run};
