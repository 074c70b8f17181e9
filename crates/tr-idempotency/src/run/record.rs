//! Records how a run ended: in this process, and first in a store if it has the claim.
use super::{DetachedCall, Phase, Run};
use crate::{
    bounds::{Answers, Detachable},
    clock::millis,
    end::{Failure, State, failed, ttl},
    error::SharedFailure,
    failure::{RecordedFailure, SMALL_FAILURE},
    remote::{Ending, Recorded, Stage, TRIED},
};
use std::sync::Arc;
use tr_core::{BoxError, Verdict};

impl<S, Req, R, A, V> Run<S, Req, R, A, V> {
    /// The state to record for a response, and whether a duplicate will get that response.
    #[inline]
    pub(super) fn state_of(&self, response: &R, mutating: bool) -> (Option<State<V>>, bool)
    where
        A: Answers<Req, R, V>,
    {
        let end = self.answers.classify(Ok(response));
        let kept = self.answers.store(response);
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
        (state, keeps_answer)
    }

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
    fn judge(
        &self,
        end: Result<R, BoxError>,
        mutating: bool,
    ) -> (Option<State<V>>, bool, Result<R, BoxError>)
    where
        A: Answers<Req, R, V>,
    {
        match end {
            Ok(response) => {
                let (state, keeps) = self.state_of(&response, mutating);
                (state, keeps, Ok(response))
            }
            Err(error) => {
                let (state, error) = self.state_of_error(error);
                (Some(state), true, Err(error))
            }
        }
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
        let Some(mut claim) = run.claim.take() else {
            Self::return_cell(cell);
            return end;
        };
        match end {
            Ok(mut response) => {
                let (state, keeps_answer) = run.state_of(&response, claim.mutating);
                claim.size = run.size_of(state.as_ref());
                let answers = run.answers;
                if !(claim.finish(state, cell) && keeps_answer) {
                    answers.note_unrecorded(&mut response);
                }
                Ok(response)
            }
            Err(error) => {
                let (state, error) = run.state_of_error(error);
                claim.size = run.size_of(Some(&state));
                claim.finish(Some(state), cell);
                Err(error)
            }
        }
    }

    /// Records the end in the store before any caller gets the response.
    pub(super) fn begin_end(&mut self, end: Result<S::Response, BoxError>) {
        // Taken out, so that its drop wakes the waiters if something panics here.
        let claim = self.claim.take().expect("a store call holds a claim");
        let (state, keeps, end) = self.judge(end, claim.mutating);
        let (ttls, mutating) = (claim.ttls, self.mutating);
        self.drop_call();
        let stage = std::mem::replace(&mut self.store_call().stage, Stage::Over);
        let Stage::Held(held) = stage else { return };
        let bare = match &state {
            Some(state) if !self.store_call().store_request.remote.settings().keeps_answers => {
                Some(state.bare())
            }
            _ => None,
        };
        let (recording, whole) = match bare.as_ref().or(state.as_ref()) {
            Some(state) => held.finish(state, ttl(&ttls, state, mutating)),
            None => (held.forget(), false),
        };
        let whole = whole && keeps && bare.is_none();
        self.store_call().stage = Stage::Ending(Ending { recording, end, state, whole });
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
        let mut claim = self.claim.take().expect("a store call holds a claim");
        claim.size = self.size_of(state.as_ref());
        let ttl = state.as_ref().and_then(|state| {
            let most = match recorded {
                Recorded::Yes if matches!(state, State::Done(Some(_))) => memory,
                Recorded::Yes | Recorded::No => None,
                Recorded::Later => Some(millis(TRIED)),
            };
            most.map(|most| most.min(claim.ttls.of(state)))
        });
        let answers = self.answers;
        let held = claim.finish_for(state, ttl, 0, self.empty_cell());
        end.map(|mut response| {
            if !(held && whole && recorded == Recorded::Yes) {
                answers.note_unrecorded(&mut response);
            }
            response
        })
    }

    /// Finishes a run without a record: only the waiters in this process share its end.
    pub(super) fn end_open(
        &mut self,
        end: Result<S::Response, BoxError>,
    ) -> Result<S::Response, BoxError> {
        let memory = self.memory();
        let mut claim = self.claim.take().expect("a store call holds a claim");
        let (state, _, end) = self.judge(end, claim.mutating);
        claim.size = self.size_of(state.as_ref());
        let done = matches!(state, Some(State::Done(Some(_))));
        let answers = self.answers;
        claim.finish_for(state, memory.filter(|_| done), 0, self.empty_cell());
        end.map(|mut response| {
            answers.note_unrecorded(&mut response);
            response
        })
    }
}
