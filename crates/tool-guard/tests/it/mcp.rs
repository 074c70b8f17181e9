//! `tool-guard mcp` between a client that sees every byte and a server whose tools fail.
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values, and reads best in place")]

mod admin;
mod attribution;
mod bad_input;
mod checks;
pub(crate) mod client;
mod collector;
mod command_line;
mod configured;
mod evidence;
mod identity;
mod lines;
mod log_file;
mod loops;
mod marks;
#[cfg(target_os = "linux")]
mod memory;
mod origins;
mod payments;
mod process;
mod records;
mod restarts;
mod retries;
mod server_key;
mod servers;
mod shadow;
mod shop;
mod summary;
mod telemetry;
mod worst;
