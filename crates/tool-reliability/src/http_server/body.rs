//! Bodies that are read to their end or to a limit, and passed on whole in both cases.
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tr_core::debug_parts;

/// The body of a request or response that went through the layer: what was read of it, then the
/// rest.
pub struct GuardedBody<B> {
    read: VecDeque<Frame<Bytes>>,
    rest: Option<Pin<Box<B>>>,
}

impl<B> GuardedBody<B> {
    /// A body that was not read.
    pub(super) fn unread(body: B) -> Self {
        Self { read: VecDeque::new(), rest: Some(Pin::from(Box::new(body))) }
    }

    /// A body that is known as a whole.
    pub(super) fn whole(bytes: Bytes) -> Self {
        let read = (!bytes.is_empty()).then(|| Frame::data(bytes)).into_iter().collect();
        Self { read, rest: None }
    }
}

impl<B: Body> Body for GuardedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(frame) = self.read.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let frame = ready!(rest.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map(as_bytes)))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.as_ref().is_none_or(|rest| B::is_end_stream(rest))
    }

    fn size_hint(&self) -> SizeHint {
        let none = || SizeHint::with_exact(0);
        let mut hint = self.rest.as_ref().map_or_else(none, |rest| B::size_hint(rest));
        let read: usize = self.read.iter().filter_map(Frame::data_ref).map(Bytes::len).sum();
        let read = read as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + read);
        }
        hint.set_lower(hint.lower() + read);
        hint
    }
}

debug_parts! { GuardedBody<B>, |it| read = it.read.len() }

/// What was read of a body.
pub(super) enum Gathered<B> {
    /// All of it.
    Whole(Bytes),
    /// It is longer than the limit, or has trailers; here it is, with what was read.
    Longer(GuardedBody<B>),
}

/// Reads a body to its end, or until it is longer than a limit or has trailers.
pub(super) async fn gather<B: Body>(body: B, limit: usize) -> Result<Gathered<B>, B::Error> {
    let mut body = GuardedBody::unread(body);
    // In one piece, so that a body of many small frames takes no more memory than its bytes.
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let more = match frame?.into_data() {
            Ok(data) if read.len() + data.len() <= limit => {
                if read.is_empty() {
                    read = data.into();
                } else {
                    read.extend_from_slice(&data);
                }
                continue;
            }
            Ok(data) => Frame::data(data),
            Err(other) => other,
        };
        body.read.extend((!read.is_empty()).then(|| Frame::data(read.into())));
        body.read.push_back(more);
        return Ok(Gathered::Longer(body));
    }
    Ok(Gathered::Whole(read.into()))
}

fn as_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}
