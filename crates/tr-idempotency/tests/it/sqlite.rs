//! Records in a SQLite file keep the rules of all stores, and some of their own.
mod clocks;
mod conform;
mod faults;
mod owners;
mod shared;
mod subject;
