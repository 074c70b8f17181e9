//! What holds with real Redis servers: killed, paused, cut off and started again.

mod launcher;
mod peer;
mod sharing;
mod tls;
mod trouble;
mod two_processes;
