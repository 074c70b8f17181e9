//! Real MCP servers, and a real MCP client, with the guard between them and without it.
#![expect(
    clippy::needless_pass_by_value,
    reason = "literals of JSON read better without a reference"
)]

mod compare;
mod everything;
mod filesystem;
mod orphans;
mod payments;
mod peer;
mod python;
mod replies;
mod session;
mod turn;
