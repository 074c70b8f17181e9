//! Behaviour of retry.
mod attempts;
mod budget;
mod common;
mod decide;
mod delays;
mod effect;
mod laws;
mod peers;
mod requests;
mod stops;
mod waiting;
