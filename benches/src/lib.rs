//! The work that is measured: the same requests and leaf services under our layers and under their peers.
//!
//! | | |
//! |---|---|
//! | [`small`] | a 40-byte `Copy` request, the kind that peers are made for, with answers of its own |
//! | [`call`] | a `ToolCall` with 1 KiB of params |
//! | [`run`] | the loop around a service that everything is measured in |
//! | [`ours`] | our layers at that work |
//! | `peers` | theirs, with the feature `peers` |
//! | [`gate`] | what `cargo xtask gate` counts the instructions of |
//!
//! `cargo xtask bench` compares ours with theirs; `cargo bench -p benches --features peers` shows the same work as
//! criterion sees it.
//!
//! This crate knows nothing of how anything is measured: that is the binaries'.
pub mod call;
#[cfg(feature = "peers")]
pub mod criterion;
pub mod gate;
pub mod ours;
#[cfg(feature = "peers")]
pub mod peers;
pub mod run;
pub mod small;
