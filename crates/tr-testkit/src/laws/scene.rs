//! Helpers of the laws: the layer around a tool, and calls of it.

use crate::{
    BoxError,
    drive::{Driven, End, PATIENCE},
    tool::{Breach, Handle, Scripted, Step},
};
use std::{
    cell::{Cell, RefCell},
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tower_service::Service;

/// The time between two wake-ups of the tool's future.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// Polls after which a single call counts as an endless busy loop.
pub(super) const SPIN: usize = 1_000;

/// The observation of a broken law.
pub(super) type Verdict = Result<(), String>;

/// The result of a call.
pub(super) type Answer<Res> = Result<Res, BoxError>;

/// Reports the law as broken, with the observation, unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($observed:tt)+) => {
        if !$holds {
            return Err(format!($($observed)+));
        }
    };
}
pub(super) use ensure;

/// The requests and responses of a layer under test, and what it declares about itself.
pub(super) struct Subject<Req, Res> {
    pub(super) request: Box<dyn Fn(u64) -> Req>,
    pub(super) response: Response<Req, Res>,
    pub(super) same: Same<Res>,
    pub(super) next: Cell<u64>,
    pub(super) detaches: bool,
    pub(super) maps_errors: bool,
}

type Same<Res> = Box<dyn Fn(&Res, &Res) -> bool>;
type Response<Req, Res> = Arc<dyn Fn(&Req) -> Res + Send + Sync>;

pub(super) struct Scene<'a, Req, Res, S> {
    pub(super) subject: &'a Subject<Req, Res>,
    layer: &'a dyn Fn(Scripted<Req, Res>) -> S,
    tools: RefCell<Vec<Handle<Req>>>,
}

impl<'a, Req, Res, S> Scene<'a, Req, Res, S>
where
    Req: Clone + Send + 'static,
    Res: Clone + fmt::Debug + Send + 'static,
    S: Service<Req, Response = Res, Error: Into<BoxError>> + Clone,
{
    pub(super) fn new(
        subject: &'a Subject<Req, Res>,
        layer: &'a dyn Fn(Scripted<Req, Res>) -> S,
    ) -> Self {
        Self { subject, layer, tools: RefCell::default() }
    }

    pub(super) fn breaches(&self) -> Vec<Breach> {
        self.tools.borrow().iter().flat_map(Handle::breaches).collect()
    }

    /// A tool that responds correctly to each call, after `ticks` wake-ups for the call's number.
    pub(super) fn tool(
        &self,
        ticks: impl Fn(usize) -> usize + Send + Sync + 'static,
    ) -> Scripted<Req, Res> {
        let response = self.subject.response.clone();
        self.watch(Scripted::by(move |n, request| {
            (0..ticks(n)).fold(Step::Ok(response(request)), |then, _| Step::after(TICK, then))
        }))
    }

    /// A tool whose calls end with `step` of their number, or correctly if that is `None`.
    pub(super) fn tool_that(
        &self,
        step: impl Fn(usize) -> Option<Step<Res>> + Send + Sync + 'static,
    ) -> Scripted<Req, Res> {
        let response = self.subject.response.clone();
        let step = move |n, request: &Req| step(n).unwrap_or_else(|| Step::Ok(response(request)));
        self.watch(Scripted::by(step))
    }

    /// Registers the tool's handle with the laws.
    pub(super) fn watch(&self, tool: Scripted<Req, Res>) -> Scripted<Req, Res> {
        self.tools.borrow_mut().push(tool.handle());
        tool
    }

    pub(super) fn layered(&self, tool: Scripted<Req, Res>) -> S {
        (self.layer)(tool)
    }

    /// A new request and its expected response.
    pub(super) fn request(&self) -> (Req, Res) {
        let n = self.subject.next.get();
        self.subject.next.set(n + 1);
        let request = (self.subject.request)(n);
        let response = (self.subject.response)(&request);
        (request, response)
    }

    /// Drives `service` until it is ready, or fails if it never is.
    pub(super) async fn ready(&self, service: &mut S) -> Result<Answer<()>, String> {
        let mut ready = Driven::new(poll_fn(|cx| service.poll_ready(cx)));
        match ready.run(SPIN).await {
            End::Finished(end) => Ok(end.map_err(Into::into)),
            End::Spent => Err(format!("`poll_ready` was woken {SPIN} times and is not ready")),
            End::Stuck => Err("`poll_ready` stays Pending though the tool has capacity".into()),
        }
    }

    /// Drives a call that was made on a ready service.
    pub(super) async fn end(&self, call: S::Future) -> Result<Answer<Res>, String> {
        self.end_of(&mut Driven::new(call)).await
    }

    /// Like `drive`, for a call that is being driven.
    pub(super) async fn end_of(&self, call: &mut Driven<S::Future>) -> Result<Answer<Res>, String> {
        match call.run(SPIN).await {
            End::Finished(end) => Ok(end.map_err(Into::into)),
            End::Spent => Err(format!("a call was woken {SPIN} times and has not ended")),
            End::Stuck => {
                Err("a call hangs: its task was not woken although the tool made progress".into())
            }
        }
    }

    /// Waits for readiness, calls, and expects the request's own response.
    pub(super) async fn answers(&self, service: &mut S) -> Verdict {
        let ready = self.ready(service).await?;
        ensure!(ready.is_ok(), "readiness failed though the tool's did not: {}", text(&ready));
        self.answers_when_called(service).await
    }

    /// The same on a service that is ready.
    pub(super) async fn answers_when_called(&self, service: &mut S) -> Verdict {
        let (request, response) = self.request();
        let answer = self.end(service.call(request)).await?;
        self.is_own(&answer, &response)
    }

    pub(super) fn is_own(&self, answer: &Answer<Res>, own: &Res) -> Verdict {
        match answer {
            Ok(response) if (self.subject.same)(response, own) => Ok(()),
            Ok(other) => Err(format!("a call got {other:?}, its own answer is {own:?}")),
            Err(error) => Err(format!("a call failed that the tool answered: {error}")),
        }
    }

    /// Expects that nothing is in flight or reserved: at once, or once detached calls have ended.
    pub(super) async fn is_idle(&self, tool: &Handle<Req>) -> Verdict {
        let since = Instant::now();
        while self.subject.detaches && since.elapsed() < PATIENCE {
            sleep(100 * TICK).await; // first, so that a task that was just spawned can call
            if tool.in_flight() == 0 && tool.reserved() == 0 {
                break;
            }
        }
        ensure!(
            tool.in_flight() == 0,
            "{} calls of the tool are still in flight",
            tool.in_flight()
        );
        ensure!(tool.reserved() == 0, "capacity for {} calls is still reserved", tool.reserved());
        Ok(())
    }
}

fn text<T>(end: &Answer<T>) -> String {
    end.as_ref().err().map(ToString::to_string).unwrap_or_default()
}

/// One poll of readiness with a waker that does nothing.
pub(super) fn poll_ready_once<Req, S: Service<Req>>(service: &mut S) -> Poll<Result<(), S::Error>> {
    service.poll_ready(&mut Context::from_waker(Waker::noop()))
}
