//! Around a tool: the intent before it starts, use and result together at its end.
pub(crate) mod future;
mod layer;
mod open;
mod service;

pub use self::{
    layer::{IntegrityBuilder, IntegrityLayer},
    service::Integrity,
};
