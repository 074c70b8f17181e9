//! The response future of a scripted tool.

use super::{
    Breach, End, Failure, Step,
    state::{Handle, Permit},
};
use std::{
    panic,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::time::{Sleep, sleep};

/// Runs one step. If it is dropped before its end, the attempt counts as cancelled.
#[must_use = "futures do nothing unless polled"]
pub struct Playing<Req, Res> {
    tool: Handle<Req>,
    permit: Option<Permit<Req>>,
    step: Option<Step<Res>>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<Req, Res> Playing<Req, Res> {
    pub(super) fn new(tool: Handle<Req>, permit: Permit<Req>, step: Step<Res>) -> Self {
        Self { tool, permit: Some(permit), step: Some(step), sleep: None }
    }

    fn end(&mut self, end: End) {
        if let Some(permit) = self.permit.take() {
            permit.end(end);
        }
    }
}

// Nothing in it is structurally pinned: the sleep has its own box.
impl<Req, Res> Unpin for Playing<Req, Res> {}

impl<Req, Res> Future for Playing<Req, Res> {
    type Output = Result<Res, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(permit) = &this.permit else {
            this.tool.breach(Breach::PolledAfterEnd);
            panic!("the response future was polled after its end");
        };
        permit.polled();
        loop {
            if let Some(sleep) = &mut this.sleep {
                ready!(sleep.as_mut().poll(cx));
                this.sleep = None;
            }
            match this.step.take() {
                Some(Step::After(delay, then)) => {
                    this.sleep = Some(Box::pin(sleep(delay)));
                    this.step = Some(*then);
                }
                Some(Step::Ok(response)) => {
                    this.end(End::Ok);
                    return Poll::Ready(Ok(response));
                }
                Some(Step::Err(failure)) => {
                    this.end(End::Err);
                    return Poll::Ready(Err(failure));
                }
                Some(Step::Panic | Step::PanicInCall) => {
                    this.end(End::Panicked);
                    quiet_panic();
                }
                Some(Step::Hang) | None => return Poll::Pending,
            }
        }
    }
}

/// Unwinds without the panic hook, since the script asked for the panic.
pub(super) fn quiet_panic() -> ! {
    panic::resume_unwind(Box::new("the scripted tool panics by its script"))
}

tr_core::debug_parts! { Playing<Req, Res>, |it| ended = it.permit.is_none() }
