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

/// Turns a stack off and on again while it runs. Calls under way end as they began.
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
}

impl<On, Off> Switch<On, Off> {
    /// Switches between `on` and `off`.
    pub(crate) const fn new(on: On, off: Off, switch: KillSwitch) -> Self {
        Self { on, off: Defer::new(off), switch }
    }

    /// The switch.
    #[must_use]
    pub const fn kill_switch(&self) -> &KillSwitch {
        &self.switch
    }
}

impl<On: Clone, Off: Clone> Clone for Switch<On, Off> {
    fn clone(&self) -> Self {
        Self { on: self.on.clone(), off: self.off.clone(), switch: self.switch.clone() }
    }
}

impl<On, Off> fmt::Debug for Switch<On, Off> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch").field("on", &self.switch.is_on()).finish_non_exhaustive()
    }
}

impl<On, Off> Service<ToolCall> for Switch<On, Off>
where
    On: Service<ToolCall, Response = Off::Response, Error = BoxError>,
    Off: Service<ToolCall> + Clone,
    Off::Error: Into<BoxError>,
{
    type Response = Off::Response;
    type Error = BoxError;
    type Future = SwitchFuture<On::Future, Off>;

    /// Both are asked, since the switch may turn before the call; the bare tool is not insisted
    /// on, since the stack may hold the same capacity.
    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if !self.switch.is_on()
            && let Poll::Ready(Err(error)) = self.off.poll_ready(cx)
        {
            return Poll::Ready(Err(error.into()));
        }
        self.on.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        let state = if self.switch.is_on() {
            State::On { future: self.on.call(call) }
        } else {
            State::Off { future: self.off.call(call) }
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
