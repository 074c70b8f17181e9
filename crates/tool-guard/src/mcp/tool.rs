//! The server as a tool service: one call is one attempt.
use super::{
    answer,
    call::{Ending, McpCall},
    flights::Flights,
    message::Token,
};
use bytes::Bytes;
use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};
use tool_reliability::idempotency::{DerivedKeys, Handle, Settlement};
use tower_service::Service;
use tr_core::{
    BoxError, Codec, Derive, Facts, Fence, Ran, Standard, ToolCall, ToolOutcome, Verdict, code,
};

/// What the service and the proxy's loop share. Nobody else locks it.
#[derive(Debug)]
pub(crate) struct Wire {
    state: Mutex<WireState>,
    limits: Limits,
    records: Handle<ToolOutcome>,
    /// Calls without a key leave records too.
    derived: bool,
    /// Answers are compared with those before.
    compares: bool,
}

/// The largest answer that is kept if it comes after its call was given up, in bytes.
const MAX_LATE: usize = 1024 * 1024;

fn size(outcome: &ToolOutcome) -> usize {
    Codec::<ToolOutcome>::size_of(&Standard, outcome)
}

/// How long an attempt may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Without an answer or progress.
    pub(crate) idle: Duration,
    /// In all.
    pub(crate) hard: Duration,
}

#[derive(Debug)]
pub(crate) struct WireState {
    pub(crate) flights: Flights,
    /// Lines for the server, in order.
    pub(crate) outbox: Vec<Bytes>,
    /// In shadow mode the proxy has sent the line already.
    pub(crate) observe: bool,
    /// The server process has ended.
    pub(crate) gone: bool,
}

impl Wire {
    pub(crate) const fn new(
        flights: Flights,
        limits: Limits,
        observe: bool,
        keys: DerivedKeys,
        records: Handle<ToolOutcome>,
    ) -> Self {
        let state = WireState { flights, outbox: Vec::new(), observe, gone: false };
        let derived = !matches!(keys, DerivedKeys::Off);
        Self { state: Mutex::new(state), limits, records, derived, compares: false }
    }

    /// Whether answers are compared with those before; without it they are not.
    pub(crate) const fn comparing(mut self, compares: bool) -> Self {
        self.compares = compares;
        self
    }

    /// Whether answers are compared with those before.
    pub(crate) const fn compares(&self) -> bool {
        self.compares
    }

    /// The claim under which the call runs, if it leaves a record. A key that cannot be used was
    /// refused by the layer that records, and a call that none can be derived for leaves none.
    pub(crate) fn claim_of(&self, call: &ToolCall) -> Option<Fence> {
        let own = call.id().ok().flatten();
        let id = own
            .or_else(|| self.derived.then(|| call.derived_id(Derive::Session).ok().flatten())?)?;
        Some(Fence { key: id.key, epoch: self.records.epoch(&id.key)? })
    }

    /// The server has answered a call after it was given up.
    pub(crate) fn settle(&self, claim: Fence, outcome: ToolOutcome) {
        let did_not_run = outcome.error().is_some_and(|error| error.ran == Ran::No);
        let how = match outcome {
            _ if did_not_run => Settlement::DidNotRun,
            outcome if outcome.can_be_kept() && size(&outcome) <= MAX_LATE => {
                Settlement::Done(outcome)
            }
            _ => Settlement::DoneNotKept,
        };
        // A record that is settled already, gone, or another run's by now needs nothing.
        let _ = self.records.settle_run(&claim.key, claim.epoch, how);
    }

    /// When the first attempt will be overdue if nothing more is heard.
    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        self.lock().flights.first_deadline(self.limits).map(Instant::from_std)
    }

    /// Ends the attempts that are overdue, and tells the server.
    pub(crate) fn end_overdue(&self, now: Instant) {
        let mut wire = self.lock();
        for wire_id in wire.flights.end_overdue(self.limits, now.into_std()) {
            wire.cancel(&wire_id);
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, WireState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WireState {
    /// Nobody waits for `wire_id` any more: tells the server.
    fn cancel(&mut self, wire_id: &Token) {
        if !self.observe {
            self.outbox.push(cancellation(wire_id));
        }
    }
}

/// Sends a call to the server and waits for its answer.
#[derive(Clone, Debug)]
pub(crate) struct ServerTool(pub(crate) Arc<Wire>);

impl Service<ToolCall> for ServerTool {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = Attempt;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Attempt {
        let mcp = McpCall::of(&call).expect("the proxy attaches what it read");
        let claim = self.0.claim_of(&call);
        let mut wire = self.0.lock();
        if wire.gone {
            return Attempt::Refused(Some(Failure::SERVER_GONE_BEFORE));
        }
        if wire.observe && mcp.is_own_id_used() {
            // Nobody knows how another attempt would have ended.
            return Attempt::Assumed;
        }
        mcp.forget();
        let now = Instant::now();
        let Some(launched) = wire.flights.launch(mcp, claim, now.into_std()) else {
            return Attempt::Refused(Some(Failure::CANCELLED_BEFORE));
        };
        if !wire.observe {
            wire.outbox.push(launched.line);
        }
        drop(wire);
        Attempt::Waiting(Waiting {
            wire: self.0.clone(),
            mcp: mcp.clone(),
            wire_id: Some(launched.wire_id),
            ending: launched.ending,
            call: call.manifest().is_some_and(|tool| !tool.not_run.is_empty()).then_some(call),
        })
    }
}

/// One attempt.
#[derive(Debug)]
pub(crate) enum Attempt {
    Assumed,
    Refused(Option<Failure>),
    Waiting(Waiting),
}

/// Waits for an answer; dropped, it gives the attempt up.
#[derive(Debug)]
pub(crate) struct Waiting {
    wire: Arc<Wire>,
    mcp: Arc<McpCall>,
    /// Until the attempt has ended.
    wire_id: Option<Token>,
    ending: oneshot::Receiver<Ending>,
    /// The call, where its tool's manifest names codes by which the tool says that it did not run.
    call: Option<ToolCall>,
}

impl Waiting {
    fn ended(
        &mut self,
        ending: Result<Ending, oneshot::error::RecvError>,
    ) -> Result<ToolOutcome, BoxError> {
        self.wire_id = None;
        match ending {
            Ok(Ending::Answered(answer, mut outcome)) => {
                self.mcp.keep(answer);
                let codes = self.call.as_ref().and_then(ToolCall::manifest);
                if codes.is_some_and(|tool| answer::says_not_run(&outcome, &tool.not_run))
                    && let Some(error) = &mut outcome.parts_mut().error
                {
                    (error.verdict, error.ran) = (Some(Verdict::TRANSIENT), Ran::No);
                }
                Ok(outcome)
            }
            Ok(Ending::Oversized(bytes)) => Err(Failure::oversized(bytes).into()),
            Ok(Ending::Overdue(after)) => Err(Failure::timeout(after).into()),
            Ok(Ending::Cancelled) => Err(Failure::CANCELLED.into()),
            Ok(Ending::ServerGone) | Err(_) => Err(Failure::SERVER_GONE.into()),
        }
    }

    fn give_up(&mut self) {
        let Some(wire_id) = self.wire_id.take() else { return };
        let mut wire = self.wire.lock();
        if wire.flights.abandon(&wire_id).is_some() {
            wire.cancel(&wire_id);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.give_up();
    }
}

fn cancellation(wire_id: &Token) -> Bytes {
    let id = wire_id.to_json();
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id},\"reason\":\"no answer in time\"}}}}\n"
    );
    line.into()
}

impl Future for Attempt {
    type Output = Result<ToolOutcome, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Assumed => Poll::Ready(Ok(ToolOutcome::default())),
            Self::Refused(failure) => {
                let failure = failure.take().expect("polled after completion");
                Poll::Ready(Err(failure.into()))
            }
            Self::Waiting(waiting) => {
                let ending = ready!(Pin::new(&mut waiting.ending).poll(cx));
                Poll::Ready(waiting.ended(ending))
            }
        }
    }
}

/// The server did not answer an attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    message: Message,
    facts: Facts,
}

#[derive(Debug)]
enum Message {
    Text(&'static str),
    TimedOut(Duration),
    Oversized(usize),
}

impl Failure {
    /// Permanent: nobody starts the server again, so no retry can help.
    pub(crate) const SERVER_GONE_BEFORE: Self = Self::new(
        "The MCP server has ended; the tool did not run",
        Facts::new("server_gone", Ran::No, Verdict::Permanent),
    );
    const SERVER_GONE: Self = Self::new(
        "The MCP server ended before it answered",
        Facts::new("server_gone", Ran::Unknown, Verdict::Permanent),
    );
    const CANCELLED_BEFORE: Self = Self::new(
        "The call was cancelled; the tool did not run",
        Facts::new(code::CANCELLED, Ran::No, Verdict::Cancelled),
    );
    const CANCELLED: Self = Self::new(
        "The call was cancelled",
        Facts::new(code::CANCELLED, Ran::Unknown, Verdict::Cancelled),
    );

    const fn new(text: &'static str, facts: Facts) -> Self {
        Self { message: Message::Text(text), facts }
    }

    const fn oversized(bytes: usize) -> Self {
        Self {
            message: Message::Oversized(bytes),
            facts: Facts::new("answer_too_large", Ran::Yes, Verdict::Permanent),
        }
    }

    const fn timeout(after: Duration) -> Self {
        Self {
            message: Message::TimedOut(after),
            facts: Facts::new(code::TIMEOUT, Ran::Unknown, Verdict::TRANSIENT),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message {
            Message::Text(text) => f.write_str(text),
            Message::Oversized(bytes) => write!(
                f,
                "The tool ran, but its answer has {bytes} bytes, more than the guard passes on: raise --max-line"
            ),
            Message::TimedOut(after) => {
                write!(f, "Tool timeout after {after:?}")
            }
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.facts)
    }
}
