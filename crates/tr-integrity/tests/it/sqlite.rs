//! The store in a SQLite file: the rules for stores, several processes, and files that are not well.
mod conform;
mod faults;
mod repaired;
mod shared;
mod subject;
