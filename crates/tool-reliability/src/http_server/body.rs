//! Bodies that are read to their end or to a limit, and passed on whole in both cases.
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    future::Future,
    mem,
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

/// Reads a body to its end, or until it is longer than a limit or has trailers.
pub(super) struct Gather<B> {
    body: Option<GuardedBody<B>>,
    /// In one piece, so that a body of many small frames takes no more memory than its bytes.
    read: Vec<u8>,
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
        let body = Some(GuardedBody::unread(body));
        Self { body, read: Vec::new(), limit }
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
                return Poll::Ready(Ok(Gathered::Whole(mem::take(&mut this.read).into())));
            };
            let more = match frame?.into_data() {
                Ok(data) if this.read.len() + data.len() <= this.limit => {
                    if this.read.is_empty() {
                        this.read = data.into();
                    } else {
                        this.read.extend_from_slice(&data);
                    }
                    continue;
                }
                Ok(data) => Frame::data(data),
                Err(other) => other,
            };
            let mut body = this.body.take().expect("it was just read");
            let read = Bytes::from(mem::take(&mut this.read));
            body.read.extend((!read.is_empty()).then(|| Frame::data(read)));
            body.read.push_back(more);
            return Poll::Ready(Ok(Gathered::Longer(body)));
        }
    }
}

fn as_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}
