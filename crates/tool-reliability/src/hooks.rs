//! User-defined hooks: before and after each attempt, and once for a call without an attempt.
use crate::adapter::ToolFailed;
use pin_project_lite::pin_project;
use std::{
    fmt::Debug,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{BoxError, ToolCall, ToolOutcome};

/// A user-defined hook.
///
/// [`prepare`](Hook::prepare) is called once per call, before any layer. Then
/// [`before`](Hook::before) and [`after`](Hook::after) come in pairs: once per attempt, and once
/// for a call that had no attempt (a replay, an open breaker, a broken loop). An attempt that is
/// dropped has no `after`.
pub trait Hook: Debug + Send + Sync {
    /// May give the call a key or change its params. A caller's own key stays, whatever a hook sets;
    /// a key that a hook gives counts as [a hook's](tr_core::call::IdempotencyParts::from_hook).
    fn prepare(&self, _: &mut ToolCall) {}

    /// An attempt begins, or a call ends without one.
    fn before(&self, _: &ToolCall) {}

    /// The attempt, or the call without one, has ended.
    fn after(&self, _: &ToolCall, _: Result<&ToolOutcome, &BoxError>) {}
}

/// Hooks, in the order in which they are called.
pub type Hooks = Arc<[Arc<dyn Hook>]>;

/// Where in the stack a [`Hooked`] service stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Around the whole call: prepares it, and calls the hooks if it had no attempt.
    Call,
    /// Around each attempt.
    Attempt,
    /// Around the bare tool, where the call is its only attempt.
    Bare,
}

/// Applies [`Hooked`].
#[derive(Clone, Debug)]
pub struct HooksLayer {
    hooks: Option<Hooks>,
    place: Place,
}

impl HooksLayer {
    /// Calls `hooks` at `place`; without any it costs nothing.
    #[must_use]
    pub fn new(hooks: &Hooks, place: Place) -> Self {
        Self { hooks: (!hooks.is_empty()).then(|| hooks.clone()), place }
    }

    /// No hooks.
    pub(crate) const fn none(place: Place) -> Self {
        Self { hooks: None, place }
    }
}

impl<S> Layer<S> for HooksLayer {
    type Service = Hooked<S>;

    fn layer(&self, inner: S) -> Hooked<S> {
        Hooked { inner, hooks: self.hooks.clone(), place: self.place }
    }
}

/// Calls hooks around an inner service.
#[derive(Clone, Debug)]
pub struct Hooked<S> {
    inner: S,
    hooks: Option<Hooks>,
    place: Place,
}

impl<S> Hooked<S> {
    /// Prepares a call before it is passed to [`Service::call`], which then does not prepare it again. For the
    /// bare tool, whose switch reads the call in between.
    pub(crate) fn prepare(&mut self, call: &mut ToolCall) {
        if let Some(hooks) = &self.hooks {
            prepare(hooks, call);
        }
        self.place = Place::Attempt;
    }

    /// The prepared call was made: the next one is prepared by [`Service::call`] again.
    pub(crate) const fn end_prepared(&mut self) {
        self.place = Place::Bare;
    }
}

impl<S> Service<ToolCall> for Hooked<S>
where
    S: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>>,
{
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = HookedFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, mut call: ToolCall) -> HookedFuture<S::Future> {
        let after = self.hooks.as_ref().map(|hooks| After::begin(hooks, self.place, &mut call));
        HookedFuture { inner: self.inner.call(call), after }
    }
}

pin_project! {
    /// The response of a [`Hooked`] service.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct HookedFuture<F> {
        #[pin]
        inner: F,
        // Boxed: most stacks have no hooks, and every outer layer moves this.
        after: Option<Box<After>>,
    }
}

/// Lets all hooks prepare the call; the caller's key stays.
fn prepare(hooks: &Hooks, call: &mut ToolCall) {
    let given = call.parts().idempotency.clone();
    hooks.iter().for_each(|hook| hook.prepare(call));
    let now = &call.parts().idempotency;
    if given.key.is_none() && given.id.is_none() {
        if now.key.is_some() && !now.from_hook {
            call.parts_mut().idempotency.from_hook = true;
        }
    } else if (&now.key, now.id, now.from_hook) != (&given.key, given.id, given.from_hook) {
        let now = &mut call.parts_mut().idempotency;
        (now.key, now.id, now.from_hook) = (given.key, given.id, given.from_hook);
    }
}

/// The hooks to notify when a call or an attempt ends, and the call that they get.
#[derive(Debug)]
struct After {
    hooks: Hooks,
    call: ToolCall,
    place: Place,
}

impl After {
    /// Calls `prepare` and `before`, as far as they belong to this place.
    #[inline(never)]
    fn begin(hooks: &Hooks, place: Place, call: &mut ToolCall) -> Box<Self> {
        if place == Place::Call {
            // A clone may be called, too, and have attempts where this one has none.
            call.set_unattempted();
        }
        if place != Place::Attempt {
            prepare(hooks, call);
        }
        if place != Place::Call {
            call.note_attempt();
            hooks.iter().for_each(|hook| hook.before(call));
        }
        Box::new(Self { hooks: hooks.clone(), call: call.clone(), place })
    }

    /// Calls `after`; and `before` first if the call had no attempt.
    #[inline(never)]
    fn notify(&self, end: Result<&ToolOutcome, &BoxError>) {
        if self.place == Place::Call {
            if self.call.had_attempt() {
                return;
            }
            self.hooks.iter().for_each(|hook| hook.before(&self.call));
        }
        self.hooks.iter().for_each(|hook| hook.after(&self.call, end));
    }
}

impl<F, E> Future for HookedFuture<F>
where
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<ToolOutcome, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let end = ready!(this.inner.poll(cx)).map_err(Into::into);
        if let Some(after) = this.after {
            match &end {
                Err(error) => ToolFailed::show(error, |error| after.notify(Err(error))),
                Ok(outcome) => after.notify(Ok(outcome)),
            }
        }
        Poll::Ready(end)
    }
}
