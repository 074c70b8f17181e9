//! What the crates of this project share. It is no part of the public API: it changes in any version.
mod coarse_instant;
mod ready_on_call;
mod sharded;
mod stripe;

pub use self::{
    coarse_instant::CoarseInstant,
    ready_on_call::{ReadyOnCall, ReadyOnCallFuture},
    sharded::{Held, Sharded},
    stripe::{STRIPES, stripe},
};
pub use crate::shorten::{ceil_char_boundary, floor_char_boundary};
