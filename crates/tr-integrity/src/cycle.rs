//! The layer around a tool: it records the intent before the tool starts, and use and result
//! together at the end.
mod error;
pub(crate) mod future;
mod layer;
mod open;
mod service;

pub use self::{
    error::IntentNotRecorded,
    layer::{IntegrityBuilder, IntegrityLayer},
    service::Integrity,
};
pub(crate) use self::{
    error::{INTENT_NOT_RECORDED, layer_error, not_recorded},
    open::{Ended, EventContext, OpenCycle},
};
