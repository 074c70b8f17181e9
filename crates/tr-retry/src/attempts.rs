//! The attempts of one call: the state kept between them, and the result.
use crate::{
    Decision, Failed, RetryConfig, RetryExhausted, RetryStop,
    budget::RetryToken,
    config::nanos,
    decide::{decide, too_late},
    rng::{Rng, RngSource},
    shared::Settings,
};
use std::{mem::take, pin::Pin, time::Duration};
use tokio::time::Instant;
use tr_policy::{
    BoxError, Classification, CloneRequest, Event, FailureInfo, Ran, RequestPolicy, ResponsePolicy,
    Retried, RetryOverrides, Verdict, code,
};

/// The state of a call after its first failure.
pub(crate) struct Run {
    /// The configuration of this call, overrides applied.
    config: RetryConfig,
    rng: Rng,
    /// When the first attempt started.
    first: Instant,
    ran: Ran,
    /// How the last attempt ended.
    verdict: Verdict,
    /// What the last attempt failed with.
    last: Option<BoxError>,
    retried: Vec<Retried>,
    /// How many attempts got as far as the tool.
    reached: usize,
    token: Option<RetryToken>,
}

impl Run {
    /// The attempt that runs or ran last, from 0.
    pub(crate) fn attempt(&self) -> u32 {
        u32::try_from(self.retried.len()).unwrap_or(u32::MAX)
    }

    fn nanos_at(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.first))
    }
}

/// What follows from a failed attempt.
enum AttemptResult {
    /// Try again after a delay. The information replaces the error of a response that has none.
    Retry(Duration, FailureInfo),
    /// Return the end unchanged: it was the only attempt, and no retry was due.
    Leave,
    GiveUp(RetryStop, FailureInfo),
}

/// The next step after an attempt.
pub(crate) enum Next<Res> {
    Done(Result<Res, BoxError>),
    Retry(Duration),
}

/// One call with its settings.
pub(crate) struct Call<'c, Req, A> {
    pub(crate) settings: &'c Settings,
    pub(crate) policy: &'c A,
    pub(crate) spare: Option<&'c Req>,
}

impl<Req, A> Call<'_, Req, A>
where
    A: RequestPolicy<Req> + CloneRequest<Req>,
{
    /// The first failure: computes the configuration of this call.
    pub(crate) fn open(&self, first: Instant) -> Run {
        let mut config = self.settings.config.clone();
        if let Some(spare) = self.spare {
            let effect = self.policy.effect(spare);
            let by_effect = self.settings.by_effect.iter().filter(|(one, _)| *one == effect);
            let of_effect = by_effect.map(|(_, changes)| changes);
            let RetryOverrides { call, tool } = self.policy.retry_overrides(spare);
            of_effect.chain(tool).chain(call).for_each(|changes| config.apply(changes));
        }
        Run {
            config,
            rng: self.settings.rngs.as_ref().unwrap_or_else(|| RngSource::of_process()).next_rng(),
            first,
            ran: Ran::No,
            verdict: Verdict::TRANSIENT,
            last: None,
            retried: Vec::new(),
            reached: 0,
            token: None,
        }
    }

    /// What follows from the end of an attempt.
    pub(crate) fn after<Res>(
        &self,
        run: &mut Run,
        end: Result<Res, BoxError>,
        started: Instant,
        now: Instant,
    ) -> Next<Res>
    where
        A: ResponsePolicy<Res>,
    {
        let seen = self.policy.classify(end.as_ref().map_err(|error| &**error as _));
        if seen.verdict.is_success() {
            if let Some(budget) = &self.settings.budget {
                budget.success();
            }
            return Next::Done(end.map(|res| self.noted(res, run)));
        }
        match self.judge(run, seen, started, now) {
            AttemptResult::Retry(delay, info) => {
                // The response goes now: it may hold a connection.
                run.last = Some(end.err().unwrap_or_else(|| info.into()));
                Next::Retry(delay)
            }
            AttemptResult::Leave => Next::Done(end),
            AttemptResult::GiveUp(why, info) => Next::Done(self.give_up(run, why, info, end)),
        }
    }

    /// What follows from a failure.
    fn judge(
        &self,
        run: &mut Run,
        seen: Classification<'_>,
        started: Instant,
        now: Instant,
    ) -> AttemptResult {
        run.reached += usize::from(seen.reached_tool());
        run.ran = run.ran.or(seen.ran);
        run.verdict = seen.verdict;
        let attempt = run.attempt();
        match self.decide(run, seen, started, now) {
            Decision::Retry { delay } => {
                let latency = now.saturating_duration_since(started);
                self.tell(attempt, || Event::Retry {
                    attempt,
                    delay,
                    retry_after: seen.retry_after(),
                    reason: seen.code,
                    latency,
                });
                let reason = seen.code.into();
                run.retried.push(Retried { attempt: attempt + 1, delay, reason, latency });
                AttemptResult::Retry(delay, FailureInfo::of(seen))
            }
            Decision::Stop(why) => {
                if seen.verdict.is_transient() {
                    // An outer layer may be counting attempts, too.
                    let outside = self.spare.map_or(0, |spare| self.policy.attempt(spare));
                    let attempt = attempt.max(outside);
                    self.tell(attempt, || Event::RetryRefused { attempt, why: why.as_str() });
                }
                let used_up = why.is_used_up() && (attempt > 0 || why != RetryStop::Attempts);
                if attempt == 0 && (!used_up || self.is_by_deadline(run, seen, now)) {
                    return AttemptResult::Leave;
                }
                let mut end = seen;
                if used_up {
                    end.code = code::RETRY_EXHAUSTED;
                }
                end.ran = run.ran;
                end.exhausted = seen.verdict.is_transient();
                AttemptResult::GiveUp(why, FailureInfo::of(end).by_layer())
            }
        }
    }

    /// Whether it was the call's own deadline that ended the attempt.
    fn is_by_deadline(&self, run: &Run, end: Classification<'_>, now: Instant) -> bool {
        let passed = self.deadline(run).is_some_and(|deadline| run.nanos_at(now) >= deadline);
        passed && end.code == code::TIMEOUT
    }

    fn decide(
        &self,
        run: &mut Run,
        end: Classification<'_>,
        started: Instant,
        now: Instant,
    ) -> Decision {
        let Some(spare) = self.spare else {
            let transient = end.verdict.is_transient();
            return Decision::Stop(if transient {
                RetryStop::NotRepeatable
            } else {
                RetryStop::Permanent
            });
        };
        // Also where no other attempt would follow: what this one sends from now on is refused.
        let attempt = run.attempt().max(self.policy.attempt(spare));
        let has_sent = self.policy.end_attempt(spare, attempt);
        if end.verdict.is_transient()
            && let Some(why) = has_sent.then_some(RetryStop::Streamed).or(self.left_alone(spare))
        {
            return Decision::Stop(why);
        }
        let failed = Failed {
            attempt: run.attempt(),
            started: run.nanos_at(started),
            now: run.nanos_at(now),
            deadline: self.deadline(run),
            end,
            ran: run.ran,
            effect: self.policy.effect(spare),
            repeat_safe: self.policy.is_repeat_safe(spare),
        };
        let decision = decide(&run.config, &failed, &mut run.rng);
        if let (Decision::Retry { .. }, Some(budget)) = (decision, &self.settings.budget) {
            run.token = budget.withdraw();
            if run.token.is_none() {
                return Decision::Stop(RetryStop::Budget);
            }
        }
        decision
    }

    /// Why this call must not be retried by this layer; `None` if it may.
    fn left_alone(&self, spare: &Req) -> Option<RetryStop> {
        if self.policy.retries_itself(spare) {
            Some(RetryStop::OwnRetries)
        } else if self.policy.attempt(spare) > 0 {
            Some(RetryStop::RetriedOutside)
        } else if !self.is_asked_for(spare) {
            Some(RetryStop::OptedOut)
        } else {
            None
        }
    }

    /// Whether retries need no opt-in, or the call or its agent has opted in.
    fn is_asked_for(&self, spare: &Req) -> bool {
        let Settings { opt_in, agents, .. } = self.settings;
        let by_call = || *opt_in && self.policy.retry_overrides(spare).call.is_some();
        let by_agent = |agents: &[Box<str>]| {
            let agent = self.policy.agent(spare);
            agent.is_some_and(|agent| agents.iter().any(|one| **one == *agent))
        };
        match agents {
            None => !opt_in || by_call(),
            Some(agents) => by_agent(agents) || by_call(),
        }
    }

    /// The call's deadline, as nanoseconds since the first attempt started.
    fn deadline(&self, run: &Run) -> Option<u64> {
        let deadline = self.policy.deadline(self.spare?)?;
        Some(run.nanos_at(Instant::from_std(deadline)))
    }

    fn give_up<Res>(
        &self,
        run: &mut Run,
        why: RetryStop,
        info: FailureInfo,
        end: Result<Res, BoxError>,
    ) -> Result<Res, BoxError>
    where
        A: ResponsePolicy<Res>,
    {
        match end {
            Ok(res) => {
                let mut res = self.noted(res, run);
                self.policy.note_attempts(&mut res, info.ran(), info.is_exhausted());
                Ok(res)
            }
            Err(error) => {
                let info = info.because(error);
                let info = match run.last.take() {
                    // A refusal does not say what failed before it.
                    Some(last) if why == RetryStop::CircuitOpen => info.after(last),
                    _ => info,
                };
                let retried = take(&mut run.retried);
                Err(RetryExhausted { why, attempts: run.reached, retried, info }.into())
            }
        }
    }

    /// The response, with the retries before it noted.
    fn noted<Res>(&self, mut res: Res, run: &mut Run) -> Res
    where
        A: ResponsePolicy<Res>,
    {
        if !run.retried.is_empty() {
            self.policy.note_retries(&mut res, take(&mut run.retried));
        }
        res
    }

    /// Starts the next attempt, once the backoff is over and the inner service is ready: a copy of the
    /// request, if it can be copied again.
    pub(crate) fn begin(&self, run: &mut Run, now: Instant) -> Result<Option<Req>, BoxError> {
        // Getting ready takes time, too.
        if self.too_late(run, now).is_some() {
            return Err(self.overdue(run, now));
        }
        if let Some(token) = run.token.take() {
            token.spend();
        }
        Ok(self.spare.and_then(|spare| self.policy.clone_request(spare)))
    }

    fn too_late(&self, run: &Run, now: Instant) -> Option<RetryStop> {
        too_late(&run.config, self.deadline(run), run.nanos_at(now))
    }

    /// The latest time at which an attempt may start.
    pub(crate) fn latest(&self, run: &Run) -> Option<Instant> {
        let deadline = self.spare.and_then(|spare| self.policy.deadline(spare));
        let elapsed =
            run.config.max_elapsed.map(|most| most.saturating_add(Duration::from_nanos(1)));
        let elapsed = elapsed.and_then(|most| run.first.checked_add(most));
        deadline.map(Instant::from_std).into_iter().chain(elapsed).min()
    }

    /// The error for an attempt that can no longer start in time.
    pub(crate) fn overdue(&self, run: &mut Run, now: Instant) -> BoxError {
        let why = self.too_late(run, now).unwrap_or(RetryStop::Deadline);
        let info =
            FailureInfo::new(code::RETRY_EXHAUSTED, run.ran, run.verdict).exhausted().by_layer();
        self.cut_short(run, why, |last| info.because(last))
    }

    /// Completes when the caller cancels the call.
    pub(crate) fn cancellation(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        Some(self.policy.cancellation(self.spare?)?.cancelled())
    }

    /// The error for a call that was cancelled between two attempts.
    pub(crate) fn cancelled(&self, run: &mut Run) -> BoxError {
        let info = FailureInfo::new(code::CANCELLED, run.ran, Verdict::Cancelled).by_layer();
        self.cut_short(run, RetryStop::Cancelled, |last| info.because(last))
    }

    /// The error for an inner service that will never be ready again.
    pub(crate) fn unready<Res>(&self, run: &mut Run, error: BoxError) -> BoxError
    where
        A: ResponsePolicy<Res>,
    {
        let mut seen = self.policy.classify(Err(&*error));
        seen.ran = run.ran;
        seen.exhausted = true;
        let info = FailureInfo::of(seen).by_layer().because(error);
        self.cut_short(run, RetryStop::Unready, |last| info.after(last))
    }

    /// The error for a call whose next attempt does not start.
    fn cut_short(
        &self,
        run: &mut Run,
        why: RetryStop,
        info: impl FnOnce(BoxError) -> FailureInfo,
    ) -> BoxError {
        run.retried.pop();
        run.token = None;
        let attempt = run.attempt();
        self.tell(attempt, || Event::RetryRefused { attempt, why: why.as_str() });
        let last = run.last.take().expect("an attempt failed");
        let (retried, info) = (take(&mut run.retried), info(last));
        RetryExhausted { why, attempts: run.reached, retried, info }.into()
    }

    fn tell<'e>(&self, attempt: u32, event: impl FnOnce() -> Event<'e>) {
        let observer = self.settings.observer.as_ref().filter(|observer| observer.enabled());
        if let (Some(observer), Some(spare)) = (observer, self.spare) {
            let mut call = self.policy.info(spare);
            call.attempt = attempt;
            observer.on_event(&call, &event());
        }
    }
}
