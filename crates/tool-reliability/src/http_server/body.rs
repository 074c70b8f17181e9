//! Bodies that are read to their end or to a limit, and passed on whole in both cases.
use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

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
        let mut hint = self.rest.as_ref().map_or_else(SizeHint::default, |rest| B::size_hint(rest));
        let read: usize = self.read.iter().filter_map(Frame::data_ref).map(Bytes::len).sum();
        let read = read as u64;
        match (&self.rest, hint.upper()) {
            (None, _) => hint.set_exact(read),
            (Some(_), Some(upper)) => {
                hint.set_upper(upper + read);
                hint.set_lower(hint.lower() + read);
            }
            (Some(_), None) => hint.set_lower(hint.lower() + read),
        }
        hint
    }
}

impl<B> fmt::Debug for GuardedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBody").field("read", &self.read.len()).finish_non_exhaustive()
    }
}

/// Reads a body to its end, or until it is longer than a limit or has trailers.
pub(super) struct Gather<B> {
    body: Option<GuardedBody<B>>,
    read: VecDeque<Frame<Bytes>>,
    size: usize,
    limit: usize,
}

/// What was read of a body.
pub(super) enum Gathered<B> {
    /// All of it.
    Whole(Bytes),
    /// It is longer than the limit, or has trailers; here it is, with what was read.
    Longer(GuardedBody<B>),
}

impl<B> Gather<B> {
    pub(super) fn new(body: B, limit: usize) -> Self {
        Self { body: Some(GuardedBody::unread(body)), read: VecDeque::new(), size: 0, limit }
    }
}

impl<B: Body> Future for Gather<B> {
    type Output = Result<Gathered<B>, B::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let body = this.body.as_mut().expect("polled after completion");
            let Some(frame) = ready!(Pin::new(body).poll_frame(cx)) else {
                this.body = None;
                return Poll::Ready(Ok(Gathered::Whole(joined(&mut this.read))));
            };
            let frame = frame?;
            this.size += frame.data_ref().map_or(0, Bytes::len);
            let is_data = frame.is_data();
            this.read.push_back(frame);
            if !is_data || this.size > this.limit {
                let mut body = this.body.take().expect("it was just read");
                std::mem::swap(&mut body.read, &mut this.read);
                return Poll::Ready(Ok(Gathered::Longer(body)));
            }
        }
    }
}

/// The data of all frames, without a copy if there is one frame.
fn joined(frames: &mut VecDeque<Frame<Bytes>>) -> Bytes {
    let mut data = frames.drain(..).filter_map(|frame| frame.into_data().ok());
    let Some(first) = data.next() else { return Bytes::new() };
    let Some(second) = data.next() else { return first };
    let mut whole = BytesMut::from(first);
    whole.extend_from_slice(&second);
    for more in data {
        whole.extend_from_slice(&more);
    }
    whole.freeze()
}

fn as_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}
