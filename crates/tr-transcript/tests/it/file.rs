//! Session files.
mod bounded;
mod checkpoint;
mod corrupt;
mod links;
mod make;
mod mutate;
mod named;
mod property;
mod real;
