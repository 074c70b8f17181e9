//! Bodies that are read to their end or to a limit, and passed on whole in both cases.
use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    future::Future,
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

debug_parts! { GuardedBody<B>, |it| read = it.read.len() }

/// Reads a body to its end, or until it is longer than a limit or has trailers.
pub(super) struct Gather<B> {
    body: Option<GuardedBody<B>>,
    read: Data,
    limit: usize,
}

/// What was read of a body.
pub(super) enum Gathered<B> {
    /// All of it.
    Whole(Bytes),
    /// It is longer than the limit, or has trailers; here it is, with what was read.
    Longer(GuardedBody<B>),
}

/// The data of frames: those of one frame as they are, those of several in one piece, so that a body of
/// many small frames takes no more memory than its bytes.
enum Data {
    One(Bytes),
    Joined(BytesMut),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::One(data) => data.len(),
            Self::Joined(data) => data.len(),
        }
    }

    fn push(&mut self, more: Bytes) {
        match self {
            Self::One(data) if data.is_empty() => *self = Self::One(more),
            Self::One(data) => {
                let mut joined = BytesMut::from(&**data);
                joined.extend_from_slice(&more);
                *self = Self::Joined(joined);
            }
            Self::Joined(data) => data.extend_from_slice(&more),
        }
    }

    fn take(&mut self) -> Bytes {
        match std::mem::replace(self, Self::One(Bytes::new())) {
            Self::One(data) => data,
            Self::Joined(data) => data.freeze(),
        }
    }
}

impl<B> Gather<B> {
    pub(super) fn new(body: B, limit: usize) -> Self {
        let body = Some(GuardedBody::unread(body));
        Self { body, read: Data::One(Bytes::new()), limit }
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
                return Poll::Ready(Ok(Gathered::Whole(this.read.take())));
            };
            let other = match frame?.into_data() {
                Ok(data) if data.is_empty() => continue,
                Ok(data) => {
                    this.read.push(data);
                    None
                }
                Err(other) => Some(other),
            };
            if other.is_some() || this.read.len() > this.limit {
                let mut body = this.body.take().expect("it was just read");
                let read = this.read.take();
                body.read.extend((!read.is_empty()).then(|| Frame::data(read)));
                body.read.extend(other);
                return Poll::Ready(Ok(Gathered::Longer(body)));
            }
        }
    }
}

fn as_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}
