//! A wrapper that is always ready and waits for its inner service inside of the call.
use pin_project_lite::pin_project;
use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;

/// A wrapper that is always ready and waits for its inner service inside of the call.
///
/// If the inner service is ready, it is called at once. If not, the instance that was polled moves
/// into the future and waits there, where a timer can limit it; its clone stays, not ready.
#[derive(Debug)]
pub struct ReadyOnCall<S> {
    inner: S,
    ready: bool,
}

impl<S> ReadyOnCall<S> {
    /// Wraps `inner`.
    pub const fn new(inner: S) -> Self {
        Self { inner, ready: false }
    }

    /// Mutable access to the inner service; its readiness stays.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Whether the inner service is ready, and the next call goes to it at once.
    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Polls the inner service; always ready itself.
    ///
    /// # Errors
    /// The inner service's, if it will never be ready again.
    #[inline]
    pub fn poll_ready<Req>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Req>,
    {
        match self.poll_inner(cx) {
            Poll::Pending => Poll::Ready(Ok(())),
            ready => ready,
        }
    }

    /// Polls the inner service, and is as ready as that.
    ///
    /// # Errors
    /// The inner service's, if it will never be ready again.
    #[inline]
    pub fn poll_inner<Req>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Req>,
    {
        if !self.ready {
            ready!(self.inner.poll_ready(cx))?;
            self.ready = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Calls the inner service at once, or in the future once it is ready.
    #[inline]
    pub fn call<Req>(&mut self, req: Req) -> ReadyOnCallFuture<S, S::Future, Req>
    where
        S: Service<Req> + Clone,
    {
        if mem::take(&mut self.ready) {
            return ReadyOnCallFuture::called(self.inner.call(req));
        }
        let clone = self.inner.clone();
        ReadyOnCallFuture::waiting(mem::replace(&mut self.inner, clone), req)
    }
}

impl<S: Clone> Clone for ReadyOnCall<S> {
    // Readiness is per instance: a clone starts not ready.
    fn clone(&self) -> Self {
        Self::new(self.inner.clone())
    }
}

pin_project! {
    /// Waits for readiness if needed, then for the response. `F` is the future of `S`.
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadyOnCallFuture<S, F, Req> {
        #[pin]
        state: State<S, F, Req>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, F, Req> {
        Called { #[pin] future: F },
        Waiting { service: S, req: Option<Req> },
    }
}

impl<S, F, Req> ReadyOnCallFuture<S, F, Req> {
    const fn called(future: F) -> Self {
        Self { state: State::Called { future } }
    }

    /// A future that waits for `service` to be ready before it calls it.
    pub const fn waiting(service: S, req: Req) -> Self {
        Self { state: State::Waiting { service, req: Some(req) } }
    }

    /// The request, until the inner service is called.
    pub fn request(self: Pin<&mut Self>) -> Option<&mut Req> {
        match self.project().state.project() {
            StateProj::Called { .. } => None,
            StateProj::Waiting { req, .. } => req.as_mut(),
        }
    }

    /// Whether the inner service has been called: before, the tool cannot have run.
    pub const fn is_called(&self) -> bool {
        matches!(self.state, State::Called { .. })
    }
}

impl<S, F, Req, T, E> Future for ReadyOnCallFuture<S, F, Req>
where
    S: Service<Req, Response = T, Error = E, Future = F>,
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProj::Called { future } => return future.poll(cx),
                StateProj::Waiting { service, req } => {
                    ready!(service.poll_ready(cx))?;
                    let future = service.call(req.take().expect("polled after completion"));
                    state.set(State::Called { future });
                }
            }
        }
    }
}

crate::debug_parts! { ReadyOnCallFuture<S, F, Req>, |it| called = it.is_called() }
