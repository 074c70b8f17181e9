//! `tool-guard mcp` between a client that sees every byte and a server whose tools fail.
mod bad_input;
mod client;
mod lines;
mod payments;
mod process;
mod retries;
mod shadow;
