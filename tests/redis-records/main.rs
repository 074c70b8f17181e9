//! Records in real Redis servers: the rules for stores, and every fault between claim and end.

mod failover;
mod faults;
mod process;
mod rules;
mod world;
