//! Around a model's API: nothing that the provider refuses is sent, nothing that a filter cut
//! short stays.
mod error;
pub(crate) mod future;
mod layer;
mod model;
mod service;
mod watch;

pub use self::{
    error::{ContentFiltered, SessionCorrupt},
    layer::{ModelGuardBuilder, ModelGuardLayer},
    model::{ModelCall, ModelEndOf, TranscriptOf},
    service::ModelGuard,
};
