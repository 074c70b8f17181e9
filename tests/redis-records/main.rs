//! Records in real Redis servers: the rules for stores, and every fault between claim and end.

#[path = "../../crates/tr-idempotency/tests/between/mod.rs"]
mod between;
mod crash;
mod failover;
mod faults;
#[path = "../../crates/tr-idempotency/tests/crash/fuse.rs"]
mod fuse;
mod launcher;
mod layered;
mod likeness;
mod points;
mod process;
mod rules;
mod sentinels;
mod servers;
mod story;
mod tls;
#[path = "../../crates/tr-idempotency/tests/crash/tool.rs"]
mod tool;
mod waiters;
mod world;
