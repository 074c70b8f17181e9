//! Implements the guard's policies for `http` requests and responses in [`DefaultPolicy`] (feature
//! `http`).
use super::{
    model::{BodyOf, ModelEndOf, TranscriptOf},
    watch::{BodyWatch, WatchedBody, of_chain},
};
use http::{
    HeaderValue, Request, Response,
    header::{CONTENT_ENCODING, CONTENT_LENGTH},
};
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tr_core::{BoxError, DefaultPolicy, End};
use tr_transcript::{AnswerScanner, Head, ModelEnd};

/// The session of an HTTP request, as an extension: it is not sent.
///
/// ```
/// use tr_integrity::SessionId;
///
/// let mut request = http::Request::post("/v1/messages").body(r#"{"messages":[]}"#.to_owned())?;
/// request.extensions_mut().insert(SessionId::new("s-1"));
/// # Ok::<_, http::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(Box<str>);

impl SessionId {
    /// The session of this name.
    #[must_use]
    pub fn new(id: impl Into<Box<str>>) -> Self {
        Self(id.into())
    }

    /// The name.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }
}

/// For [`SessionId`] and a body that is in memory: `String`, `Bytes`, `Vec<u8>`.
impl<B: AsRef<[u8]> + From<String>> TranscriptOf<Request<B>> for DefaultPolicy {
    fn session_of<'r>(&self, req: &'r Request<B>) -> Option<&'r str> {
        req.extensions().get().map(SessionId::get)
    }

    fn transcript_of<'r>(&self, req: &'r Request<B>) -> Option<&'r str> {
        std::str::from_utf8(req.body().as_ref()).ok()
    }

    fn set_transcript(&self, req: &mut Request<B>, repaired: String) {
        if let Some(length) = req.headers_mut().get_mut(CONTENT_LENGTH) {
            *length = HeaderValue::from(repaired.len());
        }
        *req.body_mut() = repaired.into();
    }
}

fn head_of<B>(res: &Response<B>) -> Head {
    let is_encoded = |coding: &HeaderValue| !coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if res.status().is_client_error() || res.status().is_server_error() {
        Head::Failure
    } else if res.headers().get(CONTENT_ENCODING).is_some_and(is_encoded) {
        Head::Encoded
    } else {
        Head::Answer
    }
}

/// For a body that is in memory: judges by status and content.
impl<B: AsRef<[u8]>> ModelEndOf<Response<B>> for DefaultPolicy {
    fn model_end_of(&self, end: End<'_, Response<B>>) -> ModelEnd {
        let response = match end {
            Ok(response) => response,
            Err(error) => return of_chain(error),
        };
        let mut scanner = AnswerScanner::of_head(head_of(response));
        scanner.push(response.body().as_ref());
        scanner.end()
    }
}

/// For a streamed body: judges by status and passing bytes. A compressed body cannot be watched:
/// let the client decompress it below the guard.
impl<B> BodyOf<Response<B>> for DefaultPolicy {
    type Watched = Response<WatchedBody<B>>;

    fn head_of(&self, response: &Response<B>) -> Head {
        head_of(response)
    }

    fn watched(&self, response: Response<B>, watch: BodyWatch) -> Self::Watched {
        response.map(|body| watch.around(body))
    }
}

impl<B> Body for WatchedBody<B>
where
    B: Body,
    B::Data: AsRef<[u8]>,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        self.poll_piece(cx, B::poll_frame, |frame| frame.data_ref().map(AsRef::as_ref))
    }

    /// Not before the call is settled: an error may follow the last frame.
    fn is_end_stream(&self) -> bool {
        if self.watch.is_over() {
            return self.is_done;
        }
        !self.watch.is_guarded() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
