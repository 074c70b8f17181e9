//! Session files.
mod real;
