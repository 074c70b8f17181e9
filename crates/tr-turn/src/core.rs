//! The state and decisions of a turn, without polling: each step takes the time as an argument.
//! `turn.rs` polls the calls and calls this.
use crate::{
    cancel::{Canceller, Token},
    error::{Stopped, Why},
    plan::{Candidate, Node, Plan},
    planner::{Planner, Settled, Start, Step},
    recorder::Recorder,
    report::{CallReport, CutShort, Report},
    running::RunContext,
    summary,
    trace::{Fact, Log, Outcome, Run},
};
use serde_json::value::RawValue;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tr_core::{BoxError, BreakerState, CallParts, Effect, Json, Params, Ran, ToolCall};

mod ended;

/// Numbers the requests of all turns of this process.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// A running turn, without its futures.
pub(crate) struct Core {
    plan: Plan,
    planner: Planner,
    log: Arc<Log>,
    recorder: Option<Recorder>,
    canceller: Canceller,
    pub(crate) deadline: Instant,
    calls: Vec<CallReport>,
    /// Calls that the turn's own deadline or cancellation ended before the turn itself was polled.
    late: Vec<(usize, Ran, Effect, Arc<Run>)>,
    steps: Vec<Step>,
}

/// A call to run.
pub(crate) struct Launch {
    pub(crate) index: usize,
    pub(crate) call: ToolCall,
    pub(crate) token: CancellationToken,
    pub(crate) context: RunContext,
}

impl Core {
    /// Starts the turn.
    pub(crate) fn new(
        plan: Plan,
        log: Arc<Log>,
        recorder: Option<Recorder>,
        canceller: Canceller,
    ) -> Self {
        let (now, timeout) = (log.began, plan.limits().timeout);
        log.of_turn(now, Fact::TurnStarted { calls: plan.nodes().len(), timeout });
        let mut steps = Vec::new();
        let planner = Planner::new(plan.clone(), &mut steps);
        let calls = plan.nodes().iter().map(CallReport::of).collect();
        let deadline = now + timeout;
        let late = Vec::new();
        let mut core =
            Self { plan, planner, log, recorder, canceller, deadline, calls, late, steps };
        core.take_steps(now);
        core
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.planner.is_over()
    }

    /// The next call that is due; `None` once the time is over.
    pub(crate) fn launch(&mut self, now: Instant) -> Option<Launch> {
        while now < self.deadline && !self.canceller.turn.is_cancelled() {
            let start = self.planner.start_next()?;
            match self.prepare(start, now) {
                Ok(launch) => return Some(launch),
                // Nothing has run.
                Err((run, stopped)) => {
                    self.fell(now, start.call, &run, Effect::Mutating, Err(stopped), 0);
                }
            }
        }
        None
    }

    fn prepare(&mut self, start: Start, now: Instant) -> Result<Launch, (Arc<Run>, BoxError)> {
        let plan = self.plan.clone();
        let node = &plan.nodes()[start.call];
        let candidate = &node.candidates[start.candidate];
        let token = self.canceller.token(node);
        let own_limit = node.timeout.or(plan.limits().call_timeout);
        let until = own_limit.map(|limit| (now + limit, limit));
        let deadline = until.map_or(self.deadline, |(at, _)| self.deadline.min(at));
        let mut run = Run::new(self.log.clone(), node.name.clone(), candidate, deadline);
        if token.is_cancelled() {
            return Err((Arc::new(run), Stopped::from(Why::Cancelled(Ran::No)).into()));
        }
        let report = &mut self.calls[start.call];
        if report.effect == Effect::ReadOnly {
            report.effect = candidate.effect.0;
        }
        // An alternative, if the call's own tool is not available or has failed.
        let (attempts, instead_of) =
            (report.attempts, std::mem::replace(&mut report.tool, candidate.label.clone()));
        if start.candidate == 0 {
            for need in &node.needs {
                if self.planner.settled(need.of) != Some(Settled::Result) {
                    let instead_of = plan.nodes()[need.of].name.clone();
                    run.push(now, 0, Fact::DefaultValueUsed { instead_of });
                }
            }
        }
        let params = match candidate.params.fill(|name| self.value(node, name)) {
            Ok(params) => params,
            Err(stopped) => return Err((Arc::new(run), stopped)),
        };
        self.calls[start.call].started.get_or_insert(self.log.since(now));
        let call = self.call(node, candidate, params, deadline, token.clone());
        run.breaker = call.breaker_key().to_string().into();
        run.hide(&call);
        if candidate.label != instead_of {
            run.push(now, attempts, Fact::AlternativeToolUsed { instead_of });
        }
        run.push(now, 0, Fact::ToolStarted);
        let run = Arc::new(run);
        let listed = self.recorder.as_ref().zip(call.parts().request_id.clone());
        let listed = listed.map(|(recorder, id)| recorder.list(id, run.clone()));
        let context = RunContext { run, effect: call.parts().effect, until, _listed: listed };
        Ok(Launch { index: start.call, call, token, context })
    }

    fn call(
        &self,
        node: &Node,
        candidate: &Candidate,
        params: Params,
        deadline: Instant,
        token: CancellationToken,
    ) -> ToolCall {
        let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
        let mut parts = CallParts::new(candidate.tool.clone(), params);
        (parts.effect, parts.effect_declared) = candidate.effect;
        parts.manifest = candidate.manifest.clone();
        parts.request_id = Some(format!("{}/{}/{number}", self.log.turn, node.name).into());
        parts.turn = Some((&*self.log.turn).into());
        parts.context.session = self.plan.session().map(Into::into);
        parts.context.agent = self.plan.agent().map(Into::into);
        parts.priority = node.priority;
        parts.deadline = Some(deadline.into_std());
        parts.hints.timeout = node.attempt_timeout.or(self.plan.limits().attempt_timeout);
        parts.idempotency.key = node.idempotency_key.clone();
        parts.cancellation_id = Some(node.cancellation_id().into());
        parts.cancellation = Some(Arc::new(Token(token)));
        parts.into()
    }

    /// The result of the call of this name, or its default.
    fn value<'p>(&'p self, node: &'p Node, name: &str) -> &'p RawValue {
        let nodes = self.plan.nodes();
        let Some(need) = node.needs.iter().find(|need| *nodes[need.of].name == *name) else {
            unreachable!("params take from what the call needs")
        };
        let value = match self.planner.settled(need.of) {
            Some(Settled::Result) => self.calls[need.of].content(),
            _ => self.plan.default_for(need),
        };
        value.map_or(RawValue::NULL, Json::as_raw)
    }

    /// The last known state of a run's breaker.
    fn breaker(&self, run: &Run) -> BreakerState {
        let recorder = self.recorder.as_ref();
        recorder.map_or(BreakerState::Closed, |recorder| recorder.breaker(&run.breaker))
    }

    /// Ends the turn, and returns its report.
    pub(crate) fn report(&mut self, now: Instant, cut_short: Option<CutShort>) -> Report {
        let calls = std::mem::take(&mut self.calls);
        let summary = summary::sentence(&calls);
        self.log.of_turn(now, Fact::TurnEnded { summary: summary.as_str().into() });
        Report { summary, calls, cut_short, took: self.log.since(now), trace: self.log.take() }
    }
}

impl Canceller {
    /// One token for each cancellation id.
    pub(crate) fn of(plan: &Plan) -> Self {
        let turn = CancellationToken::new();
        let ids = plan.nodes().iter().map(Node::cancellation_id);
        let calls = ids.map(|id| (id.into(), turn.child_token())).collect();
        Self { turn, calls: Arc::new(calls) }
    }

    fn token(&self, node: &Node) -> CancellationToken {
        self.calls.get(node.cancellation_id()).expect("the plan's own").clone()
    }
}

impl Node {
    fn cancellation_id(&self) -> &str {
        self.cancellation_id.as_deref().unwrap_or(&self.name)
    }
}

impl CallReport {
    fn of(node: &Node) -> Self {
        Self {
            name: node.name.clone(),
            tool: node.tool.clone(),
            effect: Effect::ReadOnly,
            outcome: Outcome::Skipped,
            ran: Ran::No,
            attempts: 0,
            answer: None,
            failure: None,
            decision: None,
            started: None,
            ended: Duration::ZERO,
            required: node.required,
        }
    }
}
