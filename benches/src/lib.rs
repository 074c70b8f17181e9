//! The work that is measured: the same requests and leaf services under our layers and under tower's.
//!
//! | | |
//! |---|---|
//! | [`kind`] | a request, the leaf that answers it, the policy that reads it: [`small`], [`call`] or [`mod@http`] |
//! | [`small`] | a 40-byte `Copy` request, the kind that peers are made for, with answers of its own |
//! | [`call`] | a `ToolCall` with 1 KiB of params |
//! | [`mod@http`] | an `http::Request` with a body of 1 KiB |
//! | [`run`] | the loop around a service that everything is measured in |
//! | [`ours`] | our layers at that work |
//! | [`ladder`] | the stack, one layer more at each rung |
//! | [`mod@tower`] | tower's own layers at it |
//! | [`measure`] | runs side by side |
//! | [`mod@criterion`] | runs as criterion sees them |
//! | [`gate`] | what `cargo xtask gate` counts the instructions of |
//!
//! `cargo bench -p benches` measures all of it, the ladder first. What is measured beside other peers is in `lab/`.
pub mod call;
pub mod criterion;
pub mod gate;
pub mod http;
pub mod kind;
pub mod ladder;
pub mod measure;
pub mod ours;
pub mod run;
pub mod small;
pub mod tower;
