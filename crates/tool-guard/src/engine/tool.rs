//! The server as a tool service: one call is one attempt.
use super::{
    answer,
    call::McpCall,
    effects::Effects,
    failure::{Ending, Failure},
    in_flight::{Claim, InFlight, PendingAnswer},
    limits::Limits,
    out::{Outgoing, Sent},
    settling::{CallRecords, End, settle_in_store},
    unknowns::{Kept, Unknowns, leaves_unknown},
    warnings::{Repeatable, late, repeated},
};
use crate::wire::jsonrpc::{self, Token};
use futures_util::future::Either;
use std::{
    future::{self, Future, Ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};
use tool_reliability::{
    idempotency::{Handle, Resolution},
    telemetry::TelemetryLayer,
};
use tower_service::Service;
use tr_core::{
    BoxError, DefaultPolicy, Derive, Effect, Event, FencingToken, MatchedOn, Observer, Ran, Replay,
    RequestPolicy as _, ToolCall, ToolOutcome,
    canonical::{Digest, Key},
    internal::lock,
};

/// The state that the service and the proxy's loop share.
#[derive(Debug)]
pub(crate) struct ServerLink {
    state: Mutex<LinkState>,
    pub(super) records: CallRecords,
    /// This process's calls that may have run, which several connections may share.
    pub(crate) unknowns: Arc<Unknowns>,
    /// Whether calls without a key are recorded too.
    pub(crate) derived: bool,
    /// Whether answers are compared with earlier ones.
    pub(crate) compares: bool,
    /// Whether the client runs the tools itself: then no call is made again for it, and it may give one up without
    /// a word, so that only a declared tool's calls of unknown outcome block equal ones.
    pub(super) host_runs: bool,
    /// What is known of the server's tools.
    pub(super) effects: Arc<Mutex<Effects>>,
    /// Whether records keep answers.
    pub(crate) keeps_answers: bool,
    /// The other credentials of the client's, whose answers it may read.
    pub(crate) others: Vec<Digest>,
    /// Hears of attempts that timed out, which only this service knows: progress prolongs them.
    pub(crate) timeouts: Option<Arc<dyn Observer>>,
    /// Tells of calls that the stack does not hear of, as of those that it refuses.
    pub(crate) refusals: Option<TelemetryLayer>,
}

/// How long a call waits at least for a server that is started again.
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct LinkState {
    pub(crate) in_flight: InFlight,
    pub(super) limits: Limits,
    /// Lines for the server, in order.
    pub(crate) outbox: Vec<Outgoing>,
    /// Whether the proxy has sent the line already, since calls are only watched.
    pub(crate) observe: bool,
    /// Whether the server process has ended.
    pub(crate) gone: bool,
    /// When a server that crashed should be up again.
    pub(crate) up_at: Option<Instant>,
    /// Whether the client has left, whose credential the guard must not use any more.
    pub(crate) client_left: bool,
}

impl ServerLink {
    pub(crate) fn new(
        in_flight: InFlight,
        limits: Limits,
        observe: bool,
        records: Handle<ToolOutcome>,
    ) -> Self {
        let (outbox, gone) = (Vec::new(), false);
        let state =
            LinkState { in_flight, limits, outbox, observe, gone, up_at: None, client_left: false };
        Self {
            state: Mutex::new(state),
            records: CallRecords(records),
            unknowns: Arc::default(),
            derived: false,
            compares: false,
            host_runs: false,
            effects: Arc::default(),
            keeps_answers: true,
            others: Vec::new(),
            timeouts: None,
            refusals: None,
        }
    }

    /// The claim under which the call runs, if it is recorded. The recording layer refuses an unusable key,
    /// and does not record a call without a key.
    pub(crate) fn claim_of(&self, call: &ToolCall) -> Option<Claim> {
        let is_brief = call.parts().idempotency.ttls.done == Some(Duration::ZERO);
        if let Some(fence) = call.fencing_token() {
            return Some(Claim { fence, in_store: true, is_brief });
        }
        let own = call.id().ok().flatten();
        let id = own
            .or_else(|| self.derived.then(|| call.derived_id(Derive::Session).ok().flatten())?)?;
        let fence = FencingToken { key: id.key, epoch: self.records.0.epoch(&id.key)? };
        Some(Claim { fence, in_store: false, is_brief })
    }

    /// The key of a call that has ended, if its end should be in the store and is not.
    pub(crate) fn unrecorded(&self, call: &McpCall) -> Option<Key> {
        let key = call.trace.record?;
        self.records.store()?.is_unrecorded(&key).then_some(key)
    }

    /// Handles the server's answer to a given-up call. A failure that does not say whether the call ran, such
    /// as one that answers the guard's own cancellation, leaves it unknown, and so does any of one of several attempts.
    pub(crate) fn settle(&self, owed: &PendingAnswer, outcome: ToolOutcome) {
        let outcome = answer::judged(outcome, owed.codes.as_deref());
        if leaves_unknown(&outcome) || owed.is_one_of_several() && outcome.error().is_some() {
            if let Some(equals) = &owed.equals {
                self.unknowns.answered_late(equals);
            }
            return;
        }
        self.resolve(owed, resolution(outcome));
    }

    /// Settles a given-up call of which it is known now how it ended.
    pub(crate) fn resolve(&self, owed: &PendingAnswer, how: Resolution<ToolOutcome>) {
        owed.equals.iter().for_each(|equals| self.unknowns.ended_late(equals, &how));
        let Some(Claim { fence, in_store, is_brief }) = owed.claim else { return };
        match self.records.store().filter(|_| in_store) {
            Some(store) => drop(tokio::spawn(settle_in_store(store, fence, how))),
            // Nothing to do for a record that is settled already, gone, or of another run.
            None => {
                // Its weak id may name another call now, and an equal one gets its answer.
                let how = if is_brief { Resolution::DidNotRun } else { how };
                let _ = self.records.0.settle_run(&fence.key, fence.epoch, how);
            }
        }
    }

    /// The late success of an equal call, of which the client knows only that it may have run. A call that is not recorded
    /// although it has an id runs.
    fn late_for(&self, call: &ToolCall, mcp: &McpCall, claim: Option<Claim>) -> Option<End> {
        let about = &call.parts().idempotency;
        let may = !self.host_runs
            && !self.lock().observe
            && about.key.is_none()
            && mcp.repeats.is_none()
            && (claim.is_some() || about.id.is_none());
        let equals = mcp.trace.equals.as_ref().filter(|_| may)?;
        let (kept, age, is_declared) = self.unknowns.take_late(equals, &self.others)?;
        let mut answer = match kept {
            Kept::Answer(answer) => answer,
            Kept::Nothing => return Some(Err(Failure::RAN_BEFORE.into())),
            Kept::OfAnother => return Some(Err(Failure::RAN_FOR_ANOTHER.into())),
        };
        let note = if is_declared { repeated(age) } else { late(age) };
        answer.parts_mut().notes.push(note.into());
        let matched_on = MatchedOn::Completed;
        Some(Ok(answer.replayed(Replay { matched_on, age, fingerprint: [0; 8] })))
    }

    /// Whether the server may still be asked.
    pub(super) fn is_reachable(&self) -> bool {
        let wire = self.lock();
        !wire.gone && !wire.client_left
    }

    /// When the first attempt times out unless the server sends something.
    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        let wire = self.lock();
        wire.in_flight.first_deadline(wire.limits).map(Instant::from_std)
    }

    /// Times out attempts, and cancels them at the server.
    pub(crate) fn end_overdue(&self, now: Instant) {
        let mut wire = self.lock();
        let limits = wire.limits;
        for wire_id in wire.in_flight.end_overdue(limits, now.into_std()) {
            wire.cancel(&wire_id);
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LinkState> {
        lock(&self.state)
    }
}

/// How a call ended whose answer says whether it ran.
pub(super) fn resolution(outcome: ToolOutcome) -> Resolution<ToolOutcome> {
    let did_not_run = outcome.error().is_some_and(|error| error.ran == Ran::No);
    match outcome {
        _ if did_not_run => Resolution::DidNotRun,
        outcome if outcome.can_be_kept() => Resolution::Done(outcome),
        _ => Resolution::DoneNotKept,
    }
}

impl LinkState {
    /// The client has said its name, as `name/version`.
    pub(crate) fn know_client(&mut self, name: &str) {
        self.limits = self.limits.of_client(name);
    }

    /// Cancels `wire_id` at the server.
    fn cancel(&mut self, wire_id: &Token) {
        if !self.observe {
            let line = jsonrpc::cancellation(wire_id.to_json(), "no answer in time");
            self.outbox.push(Outgoing { line, attempt: None });
        }
    }
}

/// Sends a call to the server and waits for its answer.
#[derive(Clone, Debug)]
pub(crate) struct ServerTool(pub(crate) Arc<ServerLink>);

impl Service<ToolCall> for ServerTool {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = Either<Ready<End>, Waiting>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let refused = |failure: Failure| Either::Left(future::ready(Err(failure.into())));
        let mcp = McpCall::of(&call).expect("the proxy attaches it");
        let claim = self.0.claim_of(&call);
        let (equals, is_kept) = (mcp.trace.equals, mcp.trace.late.is_some());
        let codes = call.parts().manifest.clone();
        let owed = PendingAnswer { claim, equals, is_kept, codes };
        if let Some(late) = self.0.late_for(&call, mcp, claim) {
            mcp.keep(None);
            return Either::Left(future::ready(late));
        }
        let mut wire = self.0.lock();
        if wire.gone {
            return refused(Failure::SERVER_GONE_BEFORE);
        }
        if let Some(at) = wire.up_at {
            let wait = at.saturating_duration_since(Instant::now()).max(AGAIN);
            return refused(Failure::starting(wait));
        }
        mcp.keep(None);
        let now = Instant::now();
        mcp.send();
        let Some(launched) = wire.in_flight.launch(mcp, owed, now.into_std()) else {
            return refused(Failure::CANCELLED_BEFORE);
        };
        if !wire.observe {
            let is_mutating = DefaultPolicy.effect(&call) == Effect::Mutating;
            let is_cancellable = call.parts().manifest.as_ref().is_some_and(|it| it.cancellable);
            let id = launched.wire_id.clone();
            let asks = mcp.asks.then(|| mcp.tool.clone());
            let attempt = Some(Sent { id, is_mutating, is_cancellable, asks });
            wire.outbox.push(Outgoing { line: launched.line, attempt });
        }
        drop(wire);
        Either::Right(Waiting {
            wire: self.0.clone(),
            mcp: mcp.clone(),
            wire_id: Some(launched.wire_id),
            ending: launched.ending,
            call,
        })
    }
}

/// Waits for an answer; dropping it gives up the attempt.
#[derive(Debug)]
pub(crate) struct Waiting {
    wire: Arc<ServerLink>,
    mcp: Arc<McpCall>,
    /// `None` once the attempt has ended.
    wire_id: Option<Token>,
    ending: oneshot::Receiver<Ending>,
    call: ToolCall,
}

impl Waiting {
    fn ended(&mut self, ending: Result<Ending, oneshot::error::RecvError>) -> End {
        self.wire_id = None;
        match ending {
            Ok(Ending::Answered(answer, outcome)) => {
                self.mcp.keep(answer);
                let outcome = answer::judged(outcome, self.call.manifest());
                Ok(Repeatable::of(&self.call).of_undeclared(outcome))
            }
            Ok(Ending::Overdue(after)) => {
                if let Some(observer) = self.wire.timeouts.as_ref().filter(|it| it.enabled()) {
                    let info = DefaultPolicy.info(&self.call);
                    observer.on_event(&info, &Event::TimedOut { after, ran: Ran::Unknown });
                }
                Err(Failure::timeout(after).into())
            }
            Ok(Ending::Failed(failure)) => Err(failure.into()),
            Err(_) => Err(Failure::SERVER_GONE.into()),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(wire_id) = self.wire_id.take() else { return };
        let mut wire = self.wire.lock();
        if wire.in_flight.abandon(&wire_id).is_some() {
            wire.cancel(&wire_id);
        }
    }
}

impl Future for Waiting {
    type Output = End;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let waiting = self.get_mut();
        let ending = ready!(Pin::new(&mut waiting.ending).poll(cx));
        Poll::Ready(waiting.ended(ending))
    }
}
