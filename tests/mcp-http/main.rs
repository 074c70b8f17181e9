//! `tool-guard mcp` with HTTP in front, behind, or both: every fault of a server, and clients that
//! repeat calls as agents do. First without the guard, which shows what it is for.
#![expect(
    clippy::needless_pass_by_value,
    reason = "literals of JSON read better without a reference"
)]

mod attack;
mod baseline;
mod cancelled;
mod checks;
mod child;
mod client;
mod configured;
mod down;
mod elsewhere;
mod form;
mod guard;
mod identity;
#[path = "../../crates/tool-guard/tests/it/operator.rs"]
mod operator;
mod preflight;
mod records;
mod renewed;
mod security;
mod server_key;
mod sessions;
mod stdio;
mod table;
mod unknown;
mod upstream;
mod wire;
