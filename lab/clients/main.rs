//! Real agents, with scripted models, against a server behind the guard: `cargo lab peers`.

mod again;
mod agent;
mod checks;
mod conformance;
mod faults;
mod gives_up;
mod hooks;
mod install;
mod kills;
mod limits;
mod loops;
mod payments;
mod servers;
