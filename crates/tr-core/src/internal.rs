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

/// Methods of a builder that set one field each: `fn name(value: Type) { field.of.it = value }`.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])* fn $name:ident($value:ident: $type:ty) { $($field:ident).+ = $set:expr })*) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $value: $type) -> Self {
            self.$($field).+ = $set;
            self
        }
    )*};
}
