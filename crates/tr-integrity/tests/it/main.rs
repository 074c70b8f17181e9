//! Behaviour of the validator, the repair, sessions and both layers.
mod common;
mod lossless;
mod property;
mod repair;
mod validate;
