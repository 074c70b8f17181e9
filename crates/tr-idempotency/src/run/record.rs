//! Records how a run ended: in this process, and first in a store if it has the claim.
use super::{DetachedCall, Phase, Run};
use crate::{
    bounds::{Answers, Detachable},
    clock::millis,
    end::{Failure, State, failed, ttl},
    error::SharedFailure,
    failure::{RecordedFailure, SMALL_FAILURE},
    remote::{
        Recorded, TRIED,
        call::{Ending, Stage},
    },
};
use std::sync::Arc;
use tr_core::{BoxError, Verdict};

impl<S, Req, R, A, V> Run<S, Req, R, A, V> {
    /// The size in bytes of the response, or of the long failure text, that this state keeps.
    #[inline]
    pub(super) fn size_of(&self, state: Option<&State<V>>) -> usize
    where
        A: Answers<Req, R, V>,
    {
        let Some(state) = state else { return 0 };
        match (state.kept(), state.failure()) {
            (Some(kept), _) => self.answers.size_of(kept),
            (None, Some(Failure { recorded, brief: Some(_), .. })) => recorded.size(),
            (None, _) => 0,
        }
    }

    /// The state to record for an end, whether a duplicate will get the whole of it, and the end as
    /// the caller gets it.
    #[inline]
    fn judge(
        &self,
        end: Result<R, BoxError>,
        mutating: bool,
    ) -> (Option<State<V>>, bool, Result<R, BoxError>)
    where
        A: Answers<Req, R, V>,
    {
        let response = match end {
            Ok(response) => response,
            Err(error) => {
                let (state, error) = self.state_of_error(error);
                return (Some(state), true, Err(error));
            }
        };
        let end = self.answers.classify(Ok(&response));
        let kept = self.answers.store(&response);
        let keeps_answer = kept.is_some();
        let state = match end.verdict {
            Verdict::Success if kept.is_none() && !mutating => None,
            Verdict::Success => Some(State::Done(kept)),
            _ => {
                let recorded = Arc::new(RecordedFailure::new(end, None));
                let large =
                    kept.as_ref().filter(|kept| self.answers.size_of(kept) >= SMALL_FAILURE);
                let brief = large.and_then(|kept| self.answers.shorten(kept));
                Some(failed(mutating, Failure::new(recorded, kept, brief)))
            }
        };
        (state, keeps_answer, Ok(response))
    }

    /// The state to record for an error, and the error that the callers share.
    pub(super) fn state_of_error(&self, error: BoxError) -> (State<V>, BoxError)
    where
        A: Answers<Req, R, V>,
    {
        let end = self.answers.classify(Err(&*error));
        let known = RecordedFailure::new(end, None);
        let recorded = Arc::new(RecordedFailure { error: Some(error), ..known });
        let state = failed(self.mutating, Failure::of_error(recorded.clone()));
        (state, SharedFailure::new(recorded).into())
    }
}

impl<S, Req, A, V> DetachedCall<S, S::Future, Req, S::Response, A, V>
where
    S: Detachable<Req>,
    Req: Send + 'static,
    A: Answers<Req, S::Response, V>,
    V: Clone + Send + 'static,
{
    /// Records the end in this process.
    pub(super) fn finish(
        &mut self,
        end: Result<S::Response, BoxError>,
    ) -> Result<S::Response, BoxError> {
        let mut cell = self.take_cell();
        let run = cell.as_mut().project().run;
        let Some(claim) = run.claim.take() else {
            Self::return_cell(cell);
            return end;
        };
        let (state, keeps, end) = run.judge(end, claim.mutating);
        let (size, answers) = (run.size_of(state.as_ref()), run.answers);
        // Without a time to live it ends with its call, however coarse the clock is.
        let lasts = state.as_ref().map(|state| ttl(&claim.ttls, state, claim.mutating));
        let (held, stays) = claim.finish((state, size), lasts.filter(|ttl| *ttl > 0), 0, cell);
        noted(answers, end, held && stays && keeps)
    }

    /// Records the end in the store before any caller gets the response.
    pub(super) fn begin_end(&mut self, end: Result<S::Response, BoxError>) {
        let claim = self.take_claim();
        let (state, keeps, end) = self.judge(end, claim.mutating);
        let mutating = self.mutating;
        self.drop_call();
        let store_call = self.store_call();
        let stage = std::mem::replace(&mut store_call.stage, Stage::Over);
        let Stage::Held(held) = stage else { return };
        let bare = match &state {
            Some(state) if !store_call.remote.settings.keeps_answers => Some(state.bare()),
            _ => None,
        };
        let (recording, whole) = match bare.as_ref().or(state.as_ref()) {
            Some(state) => held.finish(state, ttl(&claim.ttls, state, mutating)),
            None => (held.forget(), false),
        };
        let whole = whole && keeps && bare.is_none();
        store_call.stage = Stage::Ending(Ending { recording, end, state, whole });
        (self.claim, self.phase) = (Some(claim), Phase::Ending);
    }

    /// Finishes the claim in this process. It keeps the response only while the store has not
    /// recorded it.
    pub(super) fn end_recorded(&mut self, recorded: Recorded) -> Result<S::Response, BoxError> {
        self.phase = Phase::Polled;
        let stage = std::mem::replace(&mut self.store_call().stage, Stage::Over);
        let Stage::Ending(Ending { end, state, whole, .. }) = stage else {
            panic!("polled after completion")
        };
        let memory = self.memory();
        let claim = self.take_claim();
        let ttl = state.as_ref().and_then(|state| {
            let most = match recorded {
                Recorded::Yes if matches!(state, State::Done(Some(_))) => memory,
                Recorded::Yes | Recorded::No => None,
                Recorded::Later => Some(millis(TRIED)),
            };
            most.map(|most| most.min(claim.ttls.of(state)))
        });
        let answers = self.answers;
        let held = self.end_here(claim, state, ttl, 0);
        noted(answers, end, held && whole && recorded == Recorded::Yes)
    }

    /// Finishes a run without a record: only the waiters in this process share its end.
    pub(super) fn end_open(
        &mut self,
        end: Result<S::Response, BoxError>,
    ) -> Result<S::Response, BoxError> {
        let claim = self.take_claim();
        let (state, _, end) = self.judge(end, claim.mutating);
        let done = matches!(state, Some(State::Done(Some(_))));
        let (memory, answers) = (self.memory().filter(|_| done), self.answers);
        self.end_here(claim, state, memory, 0);
        noted(answers, end, false)
    }
}

/// The end for the caller, with a note where a duplicate will not get the whole response.
#[inline]
fn noted<Req, R, V>(
    answers: impl Answers<Req, R, V>,
    end: Result<R, BoxError>,
    is_recorded: bool,
) -> Result<R, BoxError> {
    end.map(|mut response| {
        if !is_recorded {
            answers.note_unrecorded(&mut response);
        }
        response
    })
}
