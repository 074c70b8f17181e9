//! The layer around a model's API: it sends no transcript that the provider would refuse, and
//! removes answers that a filter stopped.
mod error;
#[cfg(feature = "http")]
mod http;
mod layer;
mod model;
pub(crate) mod service;
#[cfg(feature = "stream")]
mod stream;
pub(crate) mod watch;

#[cfg(feature = "http")]
pub use self::http::SessionId;
#[cfg(feature = "stream")]
pub use self::stream::Chunks;
pub(crate) use self::watch::Watch;
pub use self::{
    error::{AnswerCutOff, CheckpointNotRecorded, ContentFiltered, SessionCorrupt},
    layer::{ModelGuardBuilder, ModelGuardLayer, Streamed, Whole},
    model::{BodyOf, ModelCall, ModelEndOf, Take, TranscriptOf},
    service::ModelGuard,
    watch::{BodyWatch, WatchedBody},
};
