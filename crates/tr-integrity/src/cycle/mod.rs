//! Around a tool: the intent before it starts, use and result together at its end.
mod error;
pub(crate) mod future;
mod layer;
mod open;
mod service;

pub use self::{
    error::IntentNotRecorded,
    layer::{IntegrityBuilder, IntegrityLayer, WhenStoreFails},
    service::Integrity,
};
pub(crate) use self::{
    error::{INTENT_NOT_RECORDED, not_recorded},
    open::{OpenCycle, Witness},
};
