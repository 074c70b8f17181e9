//! Selects the stack or the bare tool for each call. Not a layer, because it needs both.
use crate::{
    adapter::own,
    hooks::{Hooked, HookedFuture},
    order::Layers,
    rollout::{KillSwitch, Mode, Observation, ObservedFuture, Observers, ShadowEnds},
};
use pin_project_lite::pin_project;
use std::{
    mem,
    pin::Pin,
    sync::RwLock,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_config::ToolCatalog;
use tr_core::{
    BoxError, ToolCall, ToolOutcome, debug_parts,
    internal::{ReadyOnCall, ReadyOnCallFuture, Shard, ignore_poison},
};
use tr_telemetry::Signals;

/// The state that all services of a stack share, besides its layers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) switch: KillSwitch,
    /// Around the tool in mode observe.
    pub(crate) observers: Observers,
    /// The layers, as they stand beside calls in shadow mode.
    pub(crate) shadow: Layers,
    /// The function that gets the ends of such calls.
    pub(crate) shadow_ends: Option<ShadowEnds>,
    /// Around the tool in shadow mode, whose events are those of the layers beside it.
    pub(crate) silent_observers: Observers,
    /// What a configuration declares of tools, for calls that come without a manifest.
    pub(crate) tools: Option<RwLock<ToolCatalog>>,
}

impl Shared {
    /// Reports to the first `signals`, and decisions of shadow mode to the second.
    pub(crate) fn new(
        switch: KillSwitch,
        layers: &Layers,
        (signals, shadow_signals): (&Signals, &Signals),
        shadow_ends: Option<ShadowEnds>,
        tools: Option<ToolCatalog>,
    ) -> Self {
        Self {
            tools: tools.map(RwLock::new),
            switch,
            observers: Observers::new(signals, layers.adapter),
            shadow: layers.beside(shadow_signals),
            shadow_ends,
            silent_observers: Observers::new(&signals.without_logs(), layers.adapter),
        }
    }

    /// The declarations of tools, as they are now.
    pub(crate) fn tools(&self) -> ToolCatalog {
        let tools = self.tools.as_ref().map(|tools| ignore_poison(tools.read()).clone());
        tools.unwrap_or_default()
    }

    /// Replaces them, and returns those of before.
    pub(crate) fn declare(&self, tools: ToolCatalog) -> ToolCatalog {
        match &self.tools {
            Some(now) => mem::replace(&mut *ignore_poison(now.write()), tools),
            None => ToolCatalog::default(),
        }
    }

    /// The call with what is declared of its tool. The effect of an undeclared one stays as its caller made it, who may
    /// know of harm.
    #[inline]
    fn declared(&self, call: ToolCall) -> ToolCall {
        let Some(tools) = self.tools.as_ref().filter(|_| call.manifest().is_none()) else {
            return call;
        };
        match ignore_poison(tools.read()).get(&call.parts().tool).cloned() {
            Some(manifest) => call.manifested(manifest),
            None => call,
        }
    }
}

/// The stack and the bare tool; each call goes to one of them.
pub struct Switch<On, Tool> {
    on: On,
    off: ReadyOnCall<Hooked<Tool>>,
    shared: Shard<Shared>,
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
    pub(crate) const fn new(on: On, off: Hooked<Tool>, shared: Shard<Shared>) -> Self {
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

debug_parts! { Switch<On, Tool>, |it| switch = it.kill_switch() }

impl<On, Tool> Service<ToolCall> for Switch<On, Tool>
where
    On: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone,
    Tool: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>> + Clone,
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
        let call = self.shared.declared(call);
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
        let state = match mode {
            Mode::Observe => {
                let future = self.shared.observers.call(&mut self.off, call);
                State::Observed { future, beside: None }
            }
            Mode::Shadow => self.shadowed(call),
            _ => State::Off { future: self.off.call(call) },
        };
        SwitchFuture { state }
    }
}

impl<On, Tool> Switch<On, Tool>
where
    Tool: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>> + Clone,
{
    /// Observes a call of the bare tool, with the stack beside it.
    #[cold]
    fn shadowed<F>(&mut self, mut call: ToolCall) -> StateOf<F, Tool, Tool::Future> {
        let Shared { shadow, shadow_ends, .. } = &*self.shared;
        self.off.get_mut().prepare(&mut call);
        let beside = Some(Observation::new(shadow, shadow_ends.clone(), call.clone()));
        let future = self.shared.silent_observers.call(&mut self.off, call);
        self.off.get_mut().end_prepared();
        State::Observed { future, beside }
    }
}

/// A call of the bare tool, with its hooks.
type Off<Tool, F> = ReadyOnCallFuture<Hooked<Tool>, HookedFuture<F>, ToolCall>;

pin_project! {
    /// The response of a [`Switch`]. `On` is the stack's future, `F` the bare tool's.
    #[must_use = "futures do nothing unless polled"]
    pub struct SwitchFuture<On, Tool, F> {
        #[pin]
        state: StateOf<On, Tool, F>,
    }
}

type StateOf<On, Tool, F> = State<On, Off<Tool, F>, ObservedFuture<Tool, F>>;

pin_project! {
    #[project = StateProj]
    enum State<On, Off, Observed> {
        On { #[pin] future: On },
        Off { #[pin] future: Off },
        Observed { #[pin] future: Observed, beside: Option<Box<Observation>> },
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
            StateProj::Off { future } => future.poll(cx),
            StateProj::Observed { future, beside } => {
                if let Some(beside) = beside {
                    beside.poll(cx);
                }
                let end = ready!(future.poll(cx));
                if let Some(beside) = beside {
                    beside.ended(&end, cx);
                }
                Poll::Ready(end)
            }
        }
    }
}

debug_parts! { SwitchFuture<On, Tool, F>, |it|
    mode = match it.state {
        State::On { .. } => Mode::Enforce,
        State::Off { .. } => Mode::Off,
        State::Observed { beside: None, .. } => Mode::Observe,
        State::Observed { beside: Some(_), .. } => Mode::Shadow,
    }
}
