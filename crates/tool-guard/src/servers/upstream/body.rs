//! Bodies of responses.
use crate::{
    front::body::announced,
    wire::{
        lines::Oversized,
        scan::IdScan,
        sse::{Piece, Splitter},
    },
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http_body_util::{BodyDataStream, BodyExt as _};
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;
use tr_core::causes;

/// The events of a response.
pub(crate) struct Events {
    body: BodyDataStream<Incoming>,
    splitter: Splitter,
}

impl Events {
    /// Events of more than `limit` bytes are skipped.
    pub(crate) fn new(body: Incoming, limit: usize) -> Self {
        Self { body: body.into_data_stream(), splitter: Splitter::new(limit) }
    }

    /// The next part of the stream; `None` after the last.
    ///
    /// # Errors
    /// If the connection ended first.
    pub(crate) async fn next(&mut self) -> hyper::Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.splitter.next() {
                return Ok(Some(piece));
            }
            let Some(data) = self.body.next().await else { return Ok(None) };
            self.splitter.feed(&data?);
        }
    }

    /// The bytes of an event that never ended.
    pub(crate) fn rest(mut self) -> Bytes {
        self.splitter.rest()
    }
}

/// How the body of a response ended.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Bytes),
    /// It is longer than the limit; its beginning, and the rest to be read.
    Longer(BytesMut, BodyDataStream<Incoming>),
    /// The connection ended first, for this reason.
    Torn(Bytes, String),
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read(body: Incoming, limit: usize) -> Body {
    let mut all = BytesMut::with_capacity(announced(&body, limit));
    let mut body = body.into_data_stream();
    loop {
        match body.next().await {
            None => return Body::Whole(all.freeze()),
            Some(Err(error)) => return Body::Torn(all.freeze(), last_cause(&error)),
            Some(Ok(data)) => {
                all.extend_from_slice(&data);
                if all.len() > limit {
                    return Body::Longer(all, body);
                }
            }
        }
    }
}

/// The body of a refusal. The status says what happened, also where the body breaks off.
pub(super) async fn brief(body: Incoming, limit: usize, patience: Duration) -> Bytes {
    match timeout(patience, read(body, limit)).await {
        Ok(Body::Whole(body) | Body::Torn(body, _)) => body,
        Ok(Body::Longer(..)) | Err(_) => Bytes::new(),
    }
}

/// Reads the rest of a body that is too long to be kept.
pub(super) async fn skip(begun: &[u8], mut rest: BodyDataStream<Incoming>) -> Oversized {
    let mut scan = IdScan::default();
    scan.feed(begun);
    while let Some(Ok(data)) = rest.next().await {
        scan.feed(&data);
    }
    Oversized::of(scan)
}

/// The innermost cause, which says what happened.
pub(super) fn last_cause(error: &(dyn std::error::Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}
