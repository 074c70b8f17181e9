//! What holds with real PostgreSQL servers: killed, cut off and started again.

mod crash;
mod launcher;
mod repaired;
mod rules;
mod servers;
mod tls;
mod trouble;
mod writer;
