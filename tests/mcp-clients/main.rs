//! Clients of MCP that others wrote, over each way through the guard and without it.

mod again;
mod client;
mod deaths;
mod faults;
mod faulty;
mod inspector;
mod same;
mod world;

use mcp_clients::{play, process, sdk};
