//! Runs turns: the future polls its calls itself.
use crate::{
    cancel::Canceller,
    core::Core,
    plan::Plan,
    recorder::Recorder,
    report::{CutShort, Report},
    running::Running,
    trace::Log,
    watch::Watch,
};
use futures_util::stream::{FuturesUnordered, Stream};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::{
    task::coop,
    time::{Instant, Sleep, sleep_until},
};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tool_reliability::telemetry::redact::{Redact, Redactor};
use tower_service::Service;
use tr_core::{
    BoxError, SystemClock, ToolCall, ToolOutcome, WallClock, internal::ReadyOnCallFuture,
};

/// Numbers turns without a name.
static TURNS: AtomicU64 = AtomicU64::new(1);

/// Runs turns over a tool service.
///
/// Each call gets a clone of the service. Shared state (breakers, records, loop guard) belongs to
/// the service: put a [`ToolStack`](tool_reliability::ToolStack) around the tools.
#[derive(Clone)]
pub struct Turns<S> {
    service: S,
    recorder: Option<Recorder>,
    watchers: Vec<Arc<dyn Watch>>,
    redactor: Arc<dyn Redact>,
    clock: Arc<dyn WallClock>,
}

impl<S> Turns<S> {
    /// Turns over `service`.
    #[must_use]
    pub fn new(service: S) -> Self {
        Self {
            service,
            recorder: None,
            watchers: Vec::new(),
            redactor: Arc::new(Redactor::default()),
            clock: Arc::new(SystemClock),
        }
    }

    /// Sets the recorder, which adds attempts, retries and breakers to the traces; the stack must
    /// have the same recorder.
    #[must_use]
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Adds a watcher, which gets each trace entry as it happens.
    #[must_use]
    pub fn watch(mut self, watcher: impl Watch + 'static) -> Self {
        self.watchers.push(Arc::new(watcher));
        self
    }

    /// Sets the redactor of messages; [`Redactor`] by default.
    #[must_use]
    pub fn redactor(mut self, redactor: impl Redact + 'static) -> Self {
        self.redactor = Arc::new(redactor);
        self
    }

    /// Sets the clock for the traces' timestamps; the machine's by default.
    #[must_use]
    pub fn clock(mut self, clock: impl WallClock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// A turn that runs `plan`. It starts when it is first polled.
    pub fn run(&self, plan: Plan) -> Turn<S, S::Future>
    where
        S: Service<ToolCall> + Clone,
    {
        let canceller = Canceller::of(&plan);
        let cancelled = canceller.turn.clone().cancelled_owned();
        Turn {
            turns: Turns {
                service: self.service.clone(),
                recorder: self.recorder.clone(),
                watchers: self.watchers.clone(),
                redactor: self.redactor.clone(),
                clock: self.clock.clone(),
            },
            plan,
            canceller,
            core: None,
            running: FuturesUnordered::new(),
            timer: None,
            cancelled,
        }
    }

    fn log(&self, plan: &Plan) -> Log {
        let number = || format!("turn-{}", TURNS.fetch_add(1, Ordering::Relaxed));
        Log {
            turn: plan.turn().map_or_else(number, str::to_owned).into(),
            session: plan.session().map(Into::into),
            calls: plan.calls().len(),
            began: Instant::now(),
            began_ms: self.clock.unix_ms(),
            watchers: self.watchers.clone().into(),
            redactor: self.redactor.clone(),
            entries: Mutex::default(),
        }
    }
}

impl<S> fmt::Debug for Turns<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns")
            .field("recorder", &self.recorder)
            .field("watchers", &self.watchers)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// A turn: ends with a [`Report`], never with an error, and within its timeout.
    ///
    /// It spawns nothing: it polls its calls itself, and drops them when it is dropped. A stack
    /// with records runs a dropped call to its end.
    #[must_use = "futures do nothing unless polled"]
    pub struct Turn<S, F> {
        turns: Turns<S>,
        plan: Plan,
        canceller: Canceller,
        // Present once the turn has started.
        core: Option<Core>,
        running: FuturesUnordered<Running<S, F>>,
        #[pin]
        timer: Option<Sleep>,
        #[pin]
        cancelled: WaitForCancellationFutureOwned,
    }
}

impl<S, F> Turn<S, F> {
    /// The handle that cancels its calls, or the turn.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

impl<S, F, E> Future for Turn<S, F>
where
    S: Service<ToolCall, Response = ToolOutcome, Error = E, Future = F> + Clone,
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Report;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Report> {
        let mut this = self.project();
        let core = match this.core {
            Some(core) => core,
            None => {
                let log = Arc::new(this.turns.log(this.plan));
                let recorder = this.turns.recorder.clone();
                let core = Core::new(this.plan.clone(), log, recorder, this.canceller.clone());
                this.timer.set(Some(sleep_until(core.deadline())));
                this.core.insert(core)
            }
        };
        assert!(!core.is_told(), "polled after completion");
        // Calls that have ended count, even if the time is over.
        loop {
            while let Some(launch) = core.launch(Instant::now()) {
                let answer = ReadyOnCallFuture::waiting(this.turns.service.clone(), launch.call);
                let (index, token, about) = (launch.index, launch.token, launch.about);
                this.running.push(Running::new(index, answer, token, about));
            }
            match Pin::new(&mut *this.running).poll_next(cx) {
                Poll::Ready(Some((index, about, end))) => {
                    core.ended(Instant::now(), index, &about, end);
                }
                Poll::Ready(None) if core.is_over() => {
                    return Poll::Ready(core.report(Instant::now(), None));
                }
                // No call runs, and no call may start any more.
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        // Unconstrained, so that calls which use up the task's budget do not block the timeout and
        // the cancellation.
        let cancelled = Pin::new(&mut coop::unconstrained(this.cancelled)).poll(cx);
        let cut_short = if cancelled.is_ready() {
            CutShort::Cancelled
        } else {
            let timer = this.timer.as_pin_mut().expect("it has begun");
            ready!(Pin::new(&mut coop::unconstrained(timer)).poll(cx));
            CutShort::TimedOut
        };
        let running = Pin::new(&*this.running).iter_pin_ref();
        let running = running.map(|one| {
            let one = one.get_ref();
            (one.call(), one.ran(), one.about())
        });
        let report = core.expire(Instant::now(), cut_short, running);
        // Drops the calls before the report is returned.
        *this.running = FuturesUnordered::new();
        Poll::Ready(report)
    }
}

impl<S, F> fmt::Debug for Turn<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("plan", &self.plan)
            .field("begun", &self.core.is_some())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
