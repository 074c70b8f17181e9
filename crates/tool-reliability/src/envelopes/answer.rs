//! From a call's end to the bytes of its envelope.
use crate::measured::Finished;
use bytes::Bytes;
use std::time::Duration;
use tr_core::{BoxError, Json, Params, ToolCall, ToolId, find};
use tr_wire::{Form, InvalidEnvelope, RefusedRequest};

/// The answer to a request. It is written when it is asked for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The form that it is written in: the request's.
    pub form: Form,
    /// What is written.
    pub finished: Finished,
}

impl Answer {
    pub(super) const fn new(form: Form, finished: Finished) -> Self {
        Self { form, finished }
    }

    /// The answer to a request that is no call.
    pub(super) fn refusal(refused: RefusedRequest, new_id: impl FnOnce() -> Box<str>) -> Self {
        let RefusedRequest { form, request_id, tool, error, .. } = refused;
        let tool = ToolId::new(tool.as_deref().unwrap_or_default());
        let call = ToolCall::new(tool, Params::empty_object())
            .request_id(request_id.unwrap_or_else(new_id));
        Self::not_called(form, call, error)
    }

    /// The answer to a call that was not made.
    pub(super) fn not_called(form: Form, call: ToolCall, error: impl Into<BoxError>) -> Self {
        let end = Err(error.into());
        Self::new(form, Finished { call, end, attempts: 0, duration: Duration::ZERO })
    }

    /// Whether the request had faults and was no call.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.faults().is_some()
    }

    /// The faults of a request that was no call.
    #[must_use]
    pub fn faults(&self) -> Option<&InvalidEnvelope> {
        find(&**self.finished.end.as_ref().err()?)
    }

    /// The envelope.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let details = self.faults().map(InvalidEnvelope::details);
        match self.form {
            Form::BsTim5 => {
                let mut envelope = self.finished.envelope();
                if let (Some(failure), Some(details)) = (&mut envelope.error, details) {
                    failure.extra.set("details", details);
                }
                envelope.to_json()
            }
            Form::Utee => {
                let mut response = self.finished.response();
                if let Some(failure) = &mut response.error {
                    failure.details = failure.details.take().or(details);
                }
                response.to_json()
            }
        }
    }

    /// The envelope's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(self.to_json().get().as_bytes())
    }
}
