//! From a request's bytes to a call.
use super::{answer::Answer, running::Token};
use bytes::Bytes;
use std::sync::Arc;
use tr_core::{ToolCall, call::CallContext, setters};
use tr_wire::{
    Arrival, Form, RefusedRequest, Request, bs_tim_5::ToolCallEnvelope, utee::ToolRequest,
};

/// A request, as bytes or read already, and on whose behalf it is made.
#[derive(Clone, Debug)]
pub struct EnvelopeRequest {
    body: Body,
    context: CallContext,
}

#[derive(Clone)]
enum Body {
    Bytes(Bytes),
    Read(Request),
    /// Read, and entered into what can be cancelled.
    Prepared(Box<Prepared>),
}

/// A call that is ready to be made.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) form: Form,
    pub(super) call: ToolCall,
    pub(super) token: Option<Arc<Token>>,
}

impl From<Prepared> for EnvelopeRequest {
    fn from(prepared: Prepared) -> Self {
        Self::new(Body::Prepared(prepared.into()))
    }
}

impl std::fmt::Debug for Body {
    /// Params may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Read(request) => write!(f, "Read({:?})", request.form()),
            Self::Prepared(call) => write!(f, "Prepared({:?})", call.form),
        }
    }
}

impl EnvelopeRequest {
    fn new(body: Body) -> Self {
        Self { body, context: CallContext::default() }
    }

    setters! {
        /// Sets on whose behalf the call is made. What is said here comes before what the request says.
        fn on_behalf_of(context: CallContext) { context = context }
    }

    /// The call, or the answer to a request with faults.
    pub(super) fn into_call(
        self,
        most: usize,
        arrival: Arrival,
        new_id: impl Fn() -> Box<str>,
    ) -> Result<Prepared, Answer> {
        let request = match self.body {
            Body::Prepared(prepared) => return Ok(*prepared),
            Body::Read(request) => request,
            Body::Bytes(bytes) if bytes.len() > most => {
                return Err(Answer::refusal(RefusedRequest::too_long(&bytes, most), new_id));
            }
            Body::Bytes(bytes) => match Request::read(&bytes) {
                Ok(request) => request,
                Err(refused) => return Err(Answer::refusal(refused, new_id)),
            },
        };
        let form = request.form();
        match request.into_call(self.context, arrival, &new_id) {
            Ok(call) => Ok(Prepared { form, call, token: None }),
            Err(refused) => Err(Answer::refusal(refused, new_id)),
        }
    }
}

impl From<Bytes> for EnvelopeRequest {
    fn from(bytes: Bytes) -> Self {
        Self::new(Body::Bytes(bytes))
    }
}

impl From<Request> for EnvelopeRequest {
    fn from(request: Request) -> Self {
        Self::new(Body::Read(request))
    }
}

/// Requests from what is of another type first.
macro_rules! requests {
    ($($of:ty => $first:ty),*) => {$(
        impl From<$of> for EnvelopeRequest {
            fn from(given: $of) -> Self {
                <$first>::from(given).into()
            }
        }
    )*};
}

requests! {
    Vec<u8> => Bytes, String => Bytes, &'static str => Bytes,
    ToolRequest => Request, ToolCallEnvelope => Request
}
