//! Clients of MCP that others wrote, over each way through the guard and without it.

mod client;
mod faults;
mod inspector;
mod play;
mod process;
mod rust;
mod same;
mod world;
