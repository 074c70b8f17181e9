//! Behaviour of the validator, the repair, sessions and both layers.
mod answers;
mod common;
mod config;
mod cycle;
mod durable;
mod file;
mod gemini;
mod guard;
mod life;
mod lossless;
mod property;
mod recovery;
mod repair;
mod responses;
mod session;
mod steps;
mod validate;
