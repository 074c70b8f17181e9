//! Selects the stack or the bare tool for each call. Not a layer, because it needs both.
use crate::{
    adapter::own,
    hooks::{Hooked, HookedFuture},
    order::Layers,
    rollout::{KillSwitch, Mode, Observation},
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::{
    BoxError, ToolCall, ToolOutcome,
    internal::{ReadyOnCall, ReadyOnCallFuture, Sharded},
};

/// The state that all services of a stack share, besides its layers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) switch: KillSwitch,
    /// The layers, as they stand beside calls in shadow mode.
    pub(crate) shadow: Layers,
}

/// The stack and the bare tool; each call goes to one of them.
pub struct Switch<On, Tool> {
    on: On,
    off: ReadyOnCall<Hooked<Tool>>,
    shared: Sharded<Shared>,
    /// Which of the two was polled since the last call.
    asked: Option<Side>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    On,
    Off,
}

impl<On, Tool> Switch<On, Tool> {
    /// Switches between `on` and `off`.
    pub(crate) const fn new(on: On, off: Hooked<Tool>, shared: Sharded<Shared>) -> Self {
        Self { on, off: ReadyOnCall::new(off), shared, asked: None }
    }

    /// Releases the reservation of `side`: both share the tool, and the other may wait for it.
    fn release(&mut self, side: Side)
    where
        On: Clone,
        Tool: Clone,
    {
        match side {
            Side::On => self.on = self.on.clone(),
            Side::Off => self.off = self.off.clone(),
        }
    }

    /// The switch.
    #[must_use]
    pub fn kill_switch(&self) -> &KillSwitch {
        &self.shared.switch
    }
}

impl<On: Clone, Tool: Clone> Clone for Switch<On, Tool> {
    fn clone(&self) -> Self {
        // Readiness is per instance: a clone starts not ready.
        let (on, off, shared) = (self.on.clone(), self.off.clone(), self.shared.clone());
        Self { on, off, shared, asked: None }
    }
}

impl<On, Tool> fmt::Debug for Switch<On, Tool> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch").field("switch", self.kill_switch()).finish_non_exhaustive()
    }
}

impl<On, Tool> Service<ToolCall> for Switch<On, Tool>
where
    On: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone,
    Tool: Service<ToolCall, Response = ToolOutcome> + Clone,
    Tool::Error: Into<BoxError>,
{
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = SwitchFuture<On::Future, Tool, Tool::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let side = if self.shared.switch.may_enforce() { Side::On } else { Side::Off };
        if let Some(before) = self.asked.replace(side).filter(|before| *before != side) {
            self.release(before);
        }
        if side == Side::On {
            return self.on.poll_ready(cx);
        }
        match self.off.poll_ready(cx) {
            Poll::Ready(Ok(())) if !self.off.is_ready() => Poll::Pending,
            polled => polled,
        }
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        let mode = self.shared.switch.mode(&call);
        // The stack must not be called unless it was polled to readiness.
        let is_on = self.asked.take().is_none_or(|asked| asked == Side::On);
        if is_on && mode == Mode::Enforce {
            return SwitchFuture { state: State::On { future: self.on.call(call) } };
        }
        if is_on {
            self.release(Side::On);
        }
        call.note_run();
        let state = if mode == Mode::Shadow {
            self.watched(call)
        } else {
            State::Off { future: self.off.call(call), watched: None }
        };
        SwitchFuture { state }
    }
}

impl<On, Tool> Switch<On, Tool>
where
    Tool: Service<ToolCall, Response = ToolOutcome> + Clone,
    Tool::Error: Into<BoxError>,
{
    /// Calls the bare tool, with the stack beside it.
    #[cold]
    fn watched<F>(&mut self, mut call: ToolCall) -> State<F, Off<Tool, Tool::Future>> {
        self.off.get_mut().prepare(&mut call);
        let watched = Some(Observation::new(&self.shared.shadow, call.clone()));
        let future = self.off.call(call);
        self.off.get_mut().end_prepared();
        State::Off { future, watched }
    }
}

/// A call of the bare tool, with its hooks.
type Off<Tool, F> = ReadyOnCallFuture<Hooked<Tool>, HookedFuture<F>, ToolCall>;

pin_project! {
    /// The response of a [`Switch`]. `On` is the stack's future, `F` the bare tool's.
    #[must_use = "futures do nothing unless polled"]
    pub struct SwitchFuture<On, Tool, F> {
        #[pin]
        state: State<On, Off<Tool, F>>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<On, Off> {
        On { #[pin] future: On },
        Off { #[pin] future: Off, watched: Option<Box<Observation>> },
    }
}

impl<On, Tool, F, E> Future for SwitchFuture<On, Tool, F>
where
    On: Future<Output = Result<ToolOutcome, BoxError>>,
    Tool: Service<ToolCall, Response = ToolOutcome, Error = E, Future = F>,
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = On::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::On { future } => future.poll(cx).map_err(own),
            StateProj::Off { future, watched: None } => future.poll(cx),
            StateProj::Off { future, watched: Some(watched) } => {
                watched.poll(cx);
                let end = ready!(future.poll(cx));
                watched.ended(&end, cx);
                Poll::Ready(end)
            }
        }
    }
}

impl<On, Tool, F> fmt::Debug for SwitchFuture<On, Tool, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.state {
            State::On { .. } => Mode::Enforce,
            State::Off { watched: Some(_), .. } => Mode::Shadow,
            State::Off { watched: None, .. } => Mode::Off,
        };
        f.debug_struct("SwitchFuture").field("mode", &mode).finish_non_exhaustive()
    }
}
