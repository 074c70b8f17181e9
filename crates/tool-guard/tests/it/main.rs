//! `tool-guard`, as its users run it: each subcommand in a file or folder of its name.
mod config;
mod decide;
mod doctor;
mod install;
mod mcp;
mod operator;
mod session;
mod status;
mod turn;
