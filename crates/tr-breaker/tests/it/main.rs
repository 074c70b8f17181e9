//! The breaker as its users see it.
mod cases;
mod contract;
mod peers;
mod registry;
mod restart;
mod rig;
mod targets;
mod wedges;
