//! What is recorded of a run's end, in this process and in a store.
use super::{Ended, Run};
use crate::{
    bounds::Answers,
    end::{Failure, State, failed},
    error::SharedFailure,
    failure::{RecordedFailure, SMALL_FAILURE},
};
use std::sync::Arc;
use tr_core::{BoxError, Verdict};

impl<S, Req, A, V> Run<S, Req, A, V> {
    /// The size in bytes of the response, or of the long failure text, that this state keeps.
    #[inline]
    pub(super) fn size_of<R>(&self, state: Option<&State<V>>) -> usize
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
    pub(super) fn judge<R>(
        &self,
        end: Ended<R>,
        mutating: bool,
    ) -> (Option<State<V>>, bool, Ended<R>)
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
    pub(super) fn state_of_error<R>(&self, error: BoxError) -> (State<V>, BoxError)
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
