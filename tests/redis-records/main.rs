//! Records in real Redis servers: the rules for stores, and every fault between claim and end.

#[path = "../../crates/tr-idempotency/tests/it/between.rs"]
mod between;
mod crash;
mod failover;
mod faults;
#[path = "../../crates/tr-idempotency/tests/it/crash/fuse.rs"]
mod fuse;
mod guard;
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
#[path = "../../crates/tr-idempotency/tests/it/crash/tool.rs"]
mod tool;
mod waiters;
mod world;
