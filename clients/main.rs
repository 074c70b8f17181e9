//! Real agents, with scripted models, against a server behind the guard: `cargo xtask peers`.

mod agent;
mod kills;
mod loops;
mod payments;
