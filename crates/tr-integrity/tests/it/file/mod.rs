//! Session files.
mod checkpoint;
mod corrupt;
mod make;
mod mutate;
mod property;
mod real;
