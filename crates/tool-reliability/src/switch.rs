//! On: the stack. Off: the bare tool. No layer, since it needs both.
use pin_project_lite::pin_project;
use std::{
    env, fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use tower_service::Service;
use tr_core::{BoxError, Defer, DeferFuture, ToolCall};

/// The variable that turns the stack off: `TOOL_RELIABILITY_ENABLED=false`.
pub const ENABLED: &str = "TOOL_RELIABILITY_ENABLED";

/// Turns a stack off and on again while it runs. Calls under way end as they began. Off holds for
/// the very next call, on for the next that asks for readiness.
#[derive(Clone, Debug)]
pub struct KillSwitch(Arc<AtomicBool>);

impl KillSwitch {
    /// On or off.
    #[must_use]
    pub fn new(on: bool) -> Self {
        Self(Arc::new(AtomicBool::new(on)))
    }

    /// On, unless the environment variable [`ENABLED`] says `false`, `0`, `off` or `no`.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new(!env::var(ENABLED).is_ok_and(|value| is_no(&value)))
    }

    /// Turns it on or off.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }

    /// Whether it is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn is_no(value: &str) -> bool {
    ["false", "0", "off", "no"].iter().any(|no| value.trim().eq_ignore_ascii_case(no))
}

/// The stack and the bare tool, of which each call takes one.
pub struct Switch<On, Off> {
    on: On,
    off: Defer<Off>,
    switch: KillSwitch,
    /// Which of the two was asked for readiness since the last call.
    asked: Option<Side>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    On,
    Off,
}

impl<On, Off> Switch<On, Off> {
    /// Switches between `on` and `off`.
    pub(crate) const fn new(on: On, off: Off, switch: KillSwitch) -> Self {
        Self { on, off: Defer::new(off), switch, asked: None }
    }

    fn side(&self) -> Side {
        if self.switch.is_on() { Side::On } else { Side::Off }
    }

    /// Gives back what `side` has reserved: both share the tool, and what one holds and does not
    /// use the other may wait for.
    fn release(&mut self, side: Side)
    where
        On: Clone,
        Off: Clone,
    {
        match side {
            Side::On => self.on = self.on.clone(),
            Side::Off => self.off = self.off.clone(),
        }
    }

    /// The switch.
    #[must_use]
    pub const fn kill_switch(&self) -> &KillSwitch {
        &self.switch
    }
}

impl<On: Clone, Off: Clone> Clone for Switch<On, Off> {
    fn clone(&self) -> Self {
        // Readiness is per instance: a clone must earn its own.
        let (on, off, switch) = (self.on.clone(), self.off.clone(), self.switch.clone());
        Self { on, off, switch, asked: None }
    }
}

impl<On, Off> fmt::Debug for Switch<On, Off> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch").field("on", &self.switch.is_on()).finish_non_exhaustive()
    }
}

impl<On, Off> Service<ToolCall> for Switch<On, Off>
where
    On: Service<ToolCall, Response = Off::Response, Error = BoxError> + Clone,
    Off: Service<ToolCall> + Clone,
    Off::Error: Into<BoxError>,
{
    type Response = Off::Response;
    type Error = BoxError;
    type Future = SwitchFuture<On::Future, Off>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let side = self.side();
        if let Some(before) = self.asked.replace(side).filter(|before| *before != side) {
            self.release(before);
        }
        if side == Side::On {
            return self.on.poll_ready(cx);
        }
        match self.off.poll_ready(cx) {
            Poll::Ready(Ok(())) if !self.off.is_ready() => Poll::Pending,
            polled => polled.map_err(Into::into),
        }
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        let side = self.side();
        let asked = self.asked.take().unwrap_or(side);
        let state = match (asked, side) {
            (Side::On, Side::On) => State::On { future: self.on.call(call) },
            (Side::On, Side::Off) => {
                self.release(Side::On);
                State::Off { future: self.off.call(call) }
            }
            // The stack was not asked for readiness, and must not be called without.
            (Side::Off, _) => State::Off { future: self.off.call(call) },
        };
        SwitchFuture { state }
    }
}

pin_project! {
    /// The response of a [`Switch`].
    pub struct SwitchFuture<F, Off>
    where
        Off: Service<ToolCall>,
    {
        #[pin]
        state: State<F, DeferFuture<Off, ToolCall>>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<On, Off> {
        On { #[pin] future: On },
        Off { #[pin] future: Off },
    }
}

impl<F, Off> Future for SwitchFuture<F, Off>
where
    F: Future<Output = Result<Off::Response, BoxError>>,
    Off: Service<ToolCall>,
    Off::Error: Into<BoxError>,
{
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::On { future } => future.poll(cx),
            StateProj::Off { future } => future.poll(cx).map_err(Into::into),
        }
    }
}

impl<F, Off: Service<ToolCall>> fmt::Debug for SwitchFuture<F, Off> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = matches!(self.state, State::On { .. });
        f.debug_struct("SwitchFuture").field("on", &on).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::is_no;

    #[test]
    fn only_a_clear_no_turns_it_off() {
        assert!(["false", " FALSE", "0", "off", "No"].iter().all(|value| is_no(value)));
        assert!(!["", "true", "1", "falsehood"].iter().any(|value| is_no(value)));
    }
}
