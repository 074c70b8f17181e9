//! [`Turns`] runs plans over a tool service; [`Turn`] is the future of one run and polls its calls
//! itself.
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
    BoxError, SystemClock, ToolCall, ToolOutcome, WallClock, debug_parts,
    internal::ReadyOnCallFuture, setters,
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

    setters! {
        /// Sets the recorder, which adds attempts, retries and breakers to the traces; the stack must
        /// have the same recorder.
        fn recorder(recorder: Recorder) { recorder = Some(recorder) }

        /// Sets the redactor of messages; [`Redactor`] by default.
        fn redactor(redactor: impl Redact + 'static) { redactor = Arc::new(redactor) }

        /// Sets the clock for the traces' timestamps; the machine's by default.
        fn clock(clock: impl WallClock + 'static) { clock = Arc::new(clock) }

        /// Adds a watcher, which gets each trace entry as it happens.
        fn watch(watcher: impl Watch + 'static) { watchers.push(Arc::new(watcher)) }
    }

    /// A turn that runs `plan`. It starts when it is first polled.
    pub fn run(&self, plan: Plan) -> Turn<S, S::Future>
    where
        S: Service<ToolCall> + Clone,
    {
        let canceller = Canceller::of(&plan);
        let cancelled = canceller.turn.clone().cancelled_owned();
        Turn {
            turns: self.clone(),
            plan,
            canceller,
            state: State::NotStarted,
            running: FuturesUnordered::new(),
            cancelled,
        }
    }

    fn new_log(&self, plan: &Plan) -> Log {
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

debug_parts! { Turns<S>, |it| recorder = it.recorder, watchers = it.watchers }

pin_project! {
    /// A turn: ends with a [`Report`], never with an error, and within its timeout.
    ///
    /// It spawns nothing: it polls its calls itself, and drops them when it is dropped. A stack
    /// with an idempotency store finishes a dropped call in the background.
    #[must_use = "futures do nothing unless polled"]
    pub struct Turn<S, F> {
        turns: Turns<S>,
        plan: Plan,
        canceller: Canceller,
        #[pin]
        state: State,
        running: FuturesUnordered<Running<S, F>>,
        #[pin]
        cancelled: WaitForCancellationFutureOwned,
    }
}

pin_project! {
    #[project = StateProj]
    enum State {
        NotStarted,
        Running {
            core: Core,
            #[pin]
            timer: Sleep,
        },
        Ended,
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
        if let State::NotStarted = *this.state {
            let log = Arc::new(this.turns.new_log(this.plan));
            let recorder = this.turns.recorder.clone();
            let core = Core::new(this.plan.clone(), log, recorder, this.canceller.clone());
            let timer = sleep_until(core.deadline);
            this.state.set(State::Running { core, timer });
        }
        let StateProj::Running { core, timer } = this.state.as_mut().project() else {
            panic!("polled after completion");
        };
        // Calls that have ended count, even if the time is over.
        loop {
            while let Some(launch) = core.launch(Instant::now()) {
                let answer = ReadyOnCallFuture::waiting(this.turns.service.clone(), launch.call);
                let (index, token, context) = (launch.index, launch.token, launch.context);
                this.running.push(Running::new(index, answer, token, context));
            }
            match Pin::new(&mut *this.running).poll_next(cx) {
                Poll::Ready(Some((index, context, end))) => {
                    core.ended(Instant::now(), index, &context, end);
                }
                Poll::Ready(None) if core.is_over() => {
                    let report = core.report(Instant::now(), None);
                    this.state.set(State::Ended);
                    return Poll::Ready(report);
                }
                // `Pending`: calls run. `Ready(None)`: none runs, and the deadline has passed or the
                // turn was cancelled, so none starts.
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        // Unconstrained, so that calls which use up the task's budget do not block the timeout and
        // the cancellation.
        let cancelled = Pin::new(&mut coop::unconstrained(this.cancelled)).poll(cx);
        let cut_short = if cancelled.is_ready() {
            CutShort::Cancelled
        } else {
            ready!(Pin::new(&mut coop::unconstrained(timer)).poll(cx));
            CutShort::TimedOut
        };
        let running = Pin::new(&*this.running).iter_pin_ref();
        let running = running.map(|one| {
            let one = one.get_ref();
            (one.call, one.ran(), one.context())
        });
        let report = core.expire(Instant::now(), cut_short, running);
        // Drops the calls before the report is returned.
        *this.running = FuturesUnordered::new();
        this.state.set(State::Ended);
        Poll::Ready(report)
    }
}

debug_parts! { Turn<S, F>, |it|
    plan = it.plan,
    has_started = !matches!(it.state, State::NotStarted),
    running = it.running.len()
}
