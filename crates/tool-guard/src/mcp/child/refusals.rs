//! What the guard answers in place of the server.
use super::ids::Refused;
use crate::mcp::{
    answer,
    codes::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR},
    failure::Failure,
    upstream::Heard,
};
use bytes::Bytes;
use hyper::{Response, StatusCode};
use tr_core::{FailureInfo, Ran, Verdict};

/// Why a server answers nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// It could not be started, for this reason.
    NotStarted(Box<str>),
    /// It ended.
    Ended,
}

impl Gone {
    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::NotStarted(_) => self.before(),
            Self::Ended => Failure::SERVER_GONE,
        }
    }

    /// The failure of what the server never read.
    pub(super) fn before(&self) -> Failure {
        match self {
            Self::NotStarted(why) => {
                let facts = FailureInfo::new("server_not_started", Ran::No, Verdict::Permanent);
                Failure::said(why.to_string(), facts)
            }
            Self::Ended => Failure::SERVER_GONE_BEFORE,
        }
    }
}

pub(super) fn size(heard: &Heard) -> usize {
    match heard {
        Heard::Message { line, .. } => line.len(),
        _ => 0,
    }
}

pub(super) fn refusal(why: Refused) -> Response<Bytes> {
    let (code, text) = match why {
        Refused::Id => (
            INVALID_REQUEST,
            "the request was not forwarded: its id must be a string or an unambiguous number",
        ),
        Refused::Params => {
            (INVALID_PARAMS, "the request was not forwarded: a member of its params occurs twice")
        }
        Refused::Unreadable | Refused::TooMany => (
            PARSE_ERROR,
            "the body was not forwarded: it is not valid JSON (syntax error, invalid UTF-8 or a duplicate member name)",
        ),
    };
    let mut response = Response::new(answer::refusal("null", code, text));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}
