//! What tr-sqlite promises, on real files.
mod faults;
mod jobs;
mod lost;
mod processes;
mod read_only;
mod reads;
mod schema;
mod scratch;
