//! Records in real Redis servers: the rules for stores, and every fault between claim and end.

mod crash;
mod failover;
mod faults;
mod layered;
mod likeness;
mod process;
mod rules;
mod sentinels;
mod servers;
mod story;
mod waiters;
mod world;
