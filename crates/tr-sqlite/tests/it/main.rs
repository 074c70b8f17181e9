//! What tr-sqlite promises, on real files.
mod faults;
mod jobs;
mod processes;
mod read_only;
mod reads;
mod schema;
mod scratch;
