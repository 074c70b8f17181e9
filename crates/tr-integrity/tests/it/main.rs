//! Behaviour of sessions and both layers.
mod agent;
mod common;
mod config;
mod cycle;
mod durable;
mod gemini;
mod guard;
mod life;
mod property;
mod recovery;
mod responses;
mod reused;
mod session;
mod steps;
mod system;
mod unready;
mod validate;
