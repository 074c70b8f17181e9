//! What the crates of this project share. It is no part of the public API: it changes in any version.
mod ready_on_call;

pub use self::ready_on_call::{ReadyOnCall, ReadyOnCallFuture};
pub use crate::shorten::ceil_char_boundary;
pub use tr_policy::internal::*;
