//! What holds with real PostgreSQL servers: killed, cut off and started again.

mod launcher;
