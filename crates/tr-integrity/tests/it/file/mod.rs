//! Session files.
mod checkpoint;
mod make;
mod mutate;
mod property;
mod real;
