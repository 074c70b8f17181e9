//! Shadow mode: runs the stack beside a call that it does not change.
use crate::{adapter::ToolFailed, order::Layers};
use std::{
    cell::Cell,
    mem,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};
use tower_service::Service;
use tr_core::{
    BoxError, CallInfo, Event, FailureInfo, Observer, Ran, ToolCall, ToolOutcome, Verdict, code,
    debug_parts,
    internal::{ReadyOnCallFuture, lock},
};

/// The stack around the recorded end of a call.
///
/// Polled beside the call. Given the call's end, it decides what would have followed. Dropped
/// earlier, it treats the call as one whose caller left.
pub(crate) struct Observation {
    call: ToolCall,
    real: Arc<RealCall>,
    ends: Option<ShadowEnds>,
    /// `None` once the stack has decided.
    stack: Option<Stack>,
}

/// Boxed: most calls have none.
type Stack = Pin<Box<dyn Future<Output = Result<ToolOutcome, BoxError>> + Send>>;

impl Observation {
    /// Of a call that is about to be made.
    pub(crate) fn new(layers: &Layers, ends: Option<ShadowEnds>, mut call: ToolCall) -> Box<Self> {
        if let Some(chunks) = &call.parts().chunks {
            let chunks = chunks.watching();
            call.parts_mut().chunks = Some(chunks);
        }
        let real = Arc::new(RealCall::default());
        let stack = layers.around(ObservedTool(real.clone()));
        let stack = Box::pin(ReadyOnCallFuture::waiting(stack, call.clone()));
        Box::new(Self { call, real, ends, stack: Some(stack) })
    }

    /// Goes on deciding.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(stack) = &mut self.stack {
            let _shadow = enter();
            if let Poll::Ready(end) = stack.as_mut().poll(cx) {
                self.stack = None;
                if let Some(ends) = &self.ends {
                    let is_run = self.real.is_run.load(Ordering::Relaxed);
                    (ends.0)(&ShadowEnd { call: &self.call, end: &end, is_run });
                }
            }
        }
    }

    /// The call has ended: a last look at what the stack makes of it.
    pub(crate) fn ended(&mut self, end: &Result<ToolOutcome, BoxError>, cx: &mut Context<'_>) {
        self.real.end(match end {
            Ok(outcome) => End::Answered(outcome.clone()),
            Err(error) => End::Failed(ToolFailed::as_seen(&**error, self.call.manifest())),
        });
        self.poll(cx);
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.real.end(End::Dropped);
        let _shadow = enter();
        self.stack = None;
    }
}

debug_parts! { Observation, |it| call = it.call }

/// How a call in shadow mode would have ended under the stack.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ShadowEnd<'e> {
    /// The call.
    pub call: &'e ToolCall,
    /// Its end. A call that would have been retried has an error with the code `cancelled`: the end of the
    /// retry is not known.
    pub end: &'e Result<ToolOutcome, BoxError>,
    /// Whether the tool would have been run for it.
    pub is_run: bool,
}

/// The user's function that gets such ends.
#[derive(Clone)]
pub(crate) struct ShadowEnds(pub(crate) Arc<dyn Fn(&ShadowEnd<'_>) + Send + Sync>);

debug_parts! { ShadowEnds, |_it| }

/// The progress of the real call, read by the tool that replaces it in the stack.
#[derive(Debug, Default)]
struct RealCall {
    state: Mutex<State>,
    /// The tool would have been run.
    is_run: AtomicBool,
}

#[derive(Debug)]
enum State {
    Running(Option<Waker>),
    Ended(End),
    /// The first attempt got the end; later ones get only whether the tool ran.
    Reported(Ran),
}

#[derive(Debug)]
enum End {
    Answered(ToolOutcome),
    Failed(ToolFailed),
    Dropped,
}

impl Default for State {
    fn default() -> Self {
        Self::Running(None)
    }
}

impl RealCall {
    /// Notes the end; the first one counts.
    fn end(&self, end: End) {
        let mut state = lock(&self.state);
        if let State::Running(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Ended(end);
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// The innermost service of the observing stack: answers with the end of the real call.
#[derive(Clone, Debug)]
pub(crate) struct ObservedTool(Arc<RealCall>);

impl Service<ToolCall> for ObservedTool {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = ObservedToolFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> ObservedToolFuture {
        self.0.is_run.store(true, Ordering::Relaxed);
        ObservedToolFuture(self.0.clone())
    }
}

/// Waits for the real tool's end.
#[derive(Debug)]
pub(crate) struct ObservedToolFuture(Arc<RealCall>);

impl Future for ObservedToolFuture {
    type Output = Result<ToolOutcome, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.0.state);
        match &mut *state {
            State::Running(waker) => {
                waker.get_or_insert_with(|| cx.waker().clone()).clone_from(cx.waker());
                Poll::Pending
            }
            // It is unknown how another attempt would have ended, or this one without its
            // caller.
            State::Reported(ran) => Poll::Ready(Err(NotAttempted::new(*ran).into())),
            State::Ended(_) => {
                let State::Ended(end) = mem::replace(&mut *state, State::Reported(Ran::Unknown))
                else {
                    unreachable!("it has ended")
                };
                let (ran, end) = match end {
                    End::Dropped => (Ran::Unknown, Err(NotAttempted::new(Ran::Unknown).into())),
                    End::Failed(error) => (error.ran(), Err(error.into())),
                    End::Answered(outcome) => {
                        (outcome.error().map_or(Ran::Yes, |error| error.ran), Ok(outcome))
                    }
                };
                *state = State::Reported(ran);
                Poll::Ready(end)
            }
        }
    }
}

/// The error of an attempt that was not made, or of a call whose caller left.
#[derive(Debug, thiserror::Error)]
#[error("shadow mode makes no further attempt")]
struct NotAttempted(#[source] FailureInfo);

impl NotAttempted {
    const fn new(ran: Ran) -> Self {
        Self(FailureInfo::new(code::CANCELLED, ran, Verdict::Cancelled))
    }
}

thread_local! {
    static IN_SHADOW: Cell<bool> = const { Cell::new(false) };
}

struct ShadowScope(bool);

/// While this guard lives, events of layers are decisions that are not applied.
fn enter() -> ShadowScope {
    ShadowScope(IN_SHADOW.replace(true))
}

impl Drop for ShadowScope {
    fn drop(&mut self) {
        IN_SHADOW.set(self.0);
    }
}

/// Reports decisions that are not applied to `shadow`, and everything else to `real`.
pub(crate) fn routed(real: Arc<dyn Observer>, shadow: Arc<dyn Observer>) -> Arc<dyn Observer> {
    Arc::new(Routed { real, shadow })
}

#[derive(Debug)]
struct Routed {
    real: Arc<dyn Observer>,
    shadow: Arc<dyn Observer>,
}

impl Observer for Routed {
    fn enabled(&self) -> bool {
        // In shadow, both: a breaker that changes does so for enforced calls, too.
        self.real.enabled() || (IN_SHADOW.get() && self.shadow.enabled())
    }

    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let is_real = !IN_SHADOW.get() || matches!(event, Event::Breaker { .. });
        let observer = if is_real { &self.real } else { &self.shadow };
        if observer.enabled() {
            observer.on_event(call, event);
        }
    }
}
