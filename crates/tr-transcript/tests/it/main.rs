//! Behaviour of the validator, the repair, and of session files.
mod answers;
mod common;
mod copies;
mod damaged;
mod emptied;
mod file;
mod lossless;
mod members;
mod not_known;
mod repair;
mod server_tools;
mod strays;
