//! The service and its future.
use super::{
    error::{CheckpointNotRecorded, SessionCorrupt},
    layer::{ModelGuardLayer, Whole},
    model::{Take, TranscriptOf},
    watch::{self, Guarded, Watch},
};
use crate::store::StoreFuture;
use pin_project_lite::pin_project;
use std::{
    marker::PhantomData,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{BoxError, DefaultPolicy, SessionAction, debug_parts};
use tr_transcript::{Repair, Transcript, Validator};

/// Validates what is sent to a model, and rolls the session back if the call brings no answer.
///
/// A call without a session is validated, but nothing can be rolled back. Where the sessions have a
/// store, the checkpoint is written there before a clone of the service calls the model, and the
/// end of the call is written before the answer, or the answer's end, is returned.
#[derive(Clone, Debug)]
pub struct ModelGuard<S, A = DefaultPolicy, M = Whole> {
    inner: S,
    layer: ModelGuardLayer<A, M>,
}

impl<S, A, M> ModelGuard<S, A, M> {
    /// Validates what `req` sends; repairs it where that is allowed, and returns whether it did.
    fn check<Req>(&self, req: &mut Req) -> Result<bool, Box<SessionCorrupt>>
    where
        A: TranscriptOf<Req>,
    {
        let ModelGuardLayer { sessions, policy, observer, .. } = &self.layer;
        let tell = |req: &Req, action| {
            watch::tell(observer.as_ref(), policy.session_of(req), action, 0);
        };
        // A transcript in an unknown form is left to the provider.
        let sent = policy.transcript_of(req).map(Transcript::read);
        let Some(Ok(mut sent)) = sent else { return Ok(false) };
        let validator = Validator::of(&sent);
        // The provider refuses a live tail too: a request must contain the results.
        let waits = validator.waits();
        if validator.is_valid() && !waits {
            return Ok(false);
        }
        let repair = Repair::preserve().close_tail();
        if sessions.config().auto_repair {
            let is_repaired = if waits {
                self.settle_tail(req, &mut sent)
            } else {
                repair.plan(&sent).apply(&mut sent).is_ok() && Validator::of(&sent).is_valid()
            };
            if is_repaired {
                policy.set_transcript(req, sent.to_json());
                tell(req, SessionAction::Repaired);
                return Ok(true);
            }
        }
        tell(req, SessionAction::Blocked);
        if let Some(slot) = policy.session_of(req).and_then(|id| sessions.slot(id)) {
            sessions.work_on_cycle(&slot, |session, now| {
                session.note("blocked", None, None, now);
            });
        }
        let (findings, result) = (validator.findings().to_vec(), validator.result());
        Err(Box::new(SessionCorrupt::new(findings, result, repair.plan(&sent))))
    }

    /// If the request sends this session, and no tool of its live tail is running: gives the tail's
    /// uses their known results, in the session and in the request.
    fn settle_tail<Req>(&self, req: &Req, sent: &mut Transcript) -> bool
    where
        A: TranscriptOf<Req>,
    {
        let ModelGuardLayer { sessions, policy, .. } = &self.layer;
        let slot = policy.session_of(req).and_then(|id| sessions.slot(id));
        let settled = slot.and_then(|slot| {
            sessions
                .work_on_cycle(&slot, |session, now| session.settle_tail_of(sent.messages(), now))
        });
        settled.is_some_and(|messages| {
            sent.set_messages(messages);
            true
        })
    }
}

impl<S, A: Clone, M: Clone> Layer<S> for ModelGuardLayer<A, M> {
    type Service = ModelGuard<S, A, M>;

    fn layer(&self, inner: S) -> Self::Service {
        ModelGuard { inner, layer: self.clone() }
    }
}

impl<S, Req, A, M> Service<Req> for ModelGuard<S, A, M>
where
    S: Service<Req, Error: Into<BoxError>> + Clone,
    A: TranscriptOf<Req> + Clone,
    M: Take<A, S::Response>,
{
    type Response = M::Taken;
    type Error = BoxError;
    type Future = ModelGuardFuture<S, S::Future, Req, A, M::Taken, M>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut req: Req) -> Self::Future {
        let ModelGuardLayer { sessions, observer, policy, when_store_fails, .. } = &self.layer;
        let config = sessions.config();
        if !config.enabled {
            let called = State::Called { inner: self.inner.call(req), call: Some(Guarded::OFF) };
            return ModelGuardFuture::new(called, policy.clone());
        }
        let mut told = false;
        if config.validate_before_call {
            match self.check(&mut req) {
                Ok(repaired) => told = repaired,
                Err(corrupt) => {
                    let blocked = State::Record { record: None, end: Some(Err(corrupt)) };
                    return ModelGuardFuture::new(blocked, policy.clone());
                }
            }
        }
        let session = policy.session_of(&req);
        if let Some(session) = session.filter(|_| sessions.is_durable()) {
            let (sessions, observer) = (sessions.clone(), observer.clone());
            let when = *when_store_fails;
            let begin = Watch::begin_durably(sessions, session.into(), when, observer, told);
            // Calls the service that is ready, once the checkpoint is recorded, and keeps its clone.
            let stays = self.inner.clone();
            let ready = Some((mem::replace(&mut self.inner, stays), req));
            return ModelGuardFuture::new(State::Begin { begin, ready }, policy.clone());
        }
        let watch = session.map(|session| {
            let slot = sessions.open_slot(session);
            Watch::begin_in(sessions, slot, session, observer.as_ref(), told)
        });
        let (inner, call) = (self.inner.call(req), Some(Guarded::on(watch)));
        ModelGuardFuture::new(State::Called { inner, call }, policy.clone())
    }
}

pin_project! {
    /// The response of a [`ModelGuard`](crate::ModelGuard).
    #[must_use = "futures do nothing unless polled"]
    pub struct ModelGuardFuture<S, F, Req, A, Taken, M = Whole> {
        #[pin]
        state: State<S, Req, F, Taken>,
        policy: A,
        take: PhantomData<fn() -> M>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, Req, F, T> {
        // The store is writing the checkpoint.
        Begin {
            begin: StoreFuture<'static, Option<Watch>>,
            ready: Option<(S, Req)>,
        },
        Called { #[pin] inner: F, call: Option<Guarded> },
        // The store is writing the end of the call, if it has its beginning.
        Record {
            record: Option<StoreFuture<'static, ()>>,
            end: Option<Result<T, BoxError>>,
        },
    }
}

impl<S, F, Req, A, Taken, M> ModelGuardFuture<S, F, Req, A, Taken, M> {
    const fn new(state: State<S, Req, F, Taken>, policy: A) -> Self {
        Self { state, policy, take: PhantomData }
    }
}

impl<S, F, Req, A, Taken, M, T, E> Future for ModelGuardFuture<S, F, Req, A, Taken, M>
where
    S: Service<Req, Response = T, Error = E, Future = F>,
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
    M: Take<A, T, Taken = Taken>,
{
    type Output = Result<Taken, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Called { inner, call } => {
                    let answer = ready!(inner.poll(cx)).map_err(Into::into);
                    let call = call.take().expect("not polled after its end");
                    let (end, record) = M::take(this.policy, answer, call);
                    State::Record { record, end: Some(end) }
                }
                StateProj::Begin { begin, ready } => {
                    let begun = ready!(begin.as_mut().poll(cx));
                    let (mut service, req) = ready.take().expect("not polled after its end");
                    let call = match begun {
                        Ok(watch) => Guarded::on(watch),
                        Err(error) => {
                            return Poll::Ready(Err(CheckpointNotRecorded::new(error).into()));
                        }
                    };
                    State::Called { inner: service.call(req), call: Some(call) }
                }
                StateProj::Record { record, end } => {
                    // If the store fails, the end is written with the session's next change.
                    if let Some(record) = record {
                        let _ = ready!(record.as_mut().poll(cx));
                    }
                    return Poll::Ready(end.take().expect("not polled after its end"));
                }
            };
            this.state.set(next);
        }
    }
}

debug_parts! {
    ModelGuardFuture<S, F, Req, A, Taken, M>,
    |it| is_called = matches!(it.state, State::Called { .. })
}
