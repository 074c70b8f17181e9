//! One call's attempts: what is remembered between them, and what they come to.
use crate::{
    Decision, Failed, Policy, RetryExhausted, Why,
    budget::Withdrawn,
    chance::{Stream, Streams},
    decide::{decide, too_late},
    layer::Shared,
    policy::nanos,
    terms::Terms,
};
use std::time::Duration;
use tokio::time::Instant;
use tr_core::{
    BoxError, CallInfo, Classification, Classify, EffectOf, Event, Facts, KeyOf, Progress, Ran,
    Repeat, Retried, RetryOverrides, Striped, Verdict, code,
};

/// One call's attempts. A call that succeeds at once looks at no clock and remembers nothing.
pub(crate) struct Run<Req, A> {
    /// The copy that further copies are made of.
    spare: Option<Req>,
    terms: Terms,
    shared: Option<Striped<Shared>>,
    answers: A,
    /// When this attempt started, once somebody had reason to look.
    started: Option<Instant>,
    story: Option<Box<Story>>,
}

/// What is remembered of a call that failed.
struct Story {
    /// The call's own, with all that changes it.
    policy: Policy,
    stream: Stream,
    /// When the first attempt started.
    first: Instant,
    ran: Ran,
    /// How the last attempt ended.
    verdict: Verdict,
    /// What the last attempt failed with.
    last: Option<BoxError>,
    retried: Vec<Retried>,
    token: Option<Withdrawn>,
}

/// What follows an attempt.
pub(crate) enum Next<Res> {
    Done(Result<Res, BoxError>),
    Retry(Duration),
}

/// How a failed attempt is judged.
enum Judgement {
    /// Try again after a delay. The facts stand for a response, which has no error.
    Retry(Duration, Facts),
    /// Leave it as it is: it was the only attempt, and no other was called for.
    Leave,
    GiveUp(Why, Facts),
}

impl<Req, A> Run<Req, A> {
    pub(crate) const fn new(
        spare: Option<Req>,
        terms: Terms,
        shared: Option<Striped<Shared>>,
        answers: A,
    ) -> Self {
        Self { spare, terms, shared, answers, started: None, story: None }
    }

    pub(crate) fn retries(&self) -> usize {
        self.story.as_ref().map_or(0, |story| story.retried.len())
    }

    /// The attempt does not answer at once: only then is its start worth a look at the clock.
    #[inline]
    pub(crate) fn waits(&mut self) {
        if self.started.is_none() {
            self.started = Some(Instant::now());
        }
    }
}

impl<Req, A> Run<Req, A>
where
    A: EffectOf<Req> + KeyOf<Req> + Progress<Req> + Repeat<Req>,
{
    /// What follows an attempt that ended like this.
    #[inline]
    pub(crate) fn ended<Res>(&mut self, end: Result<Res, BoxError>) -> Next<Res>
    where
        A: Classify<Res>,
    {
        let seen = match &end {
            Ok(res) => self.answers.classify(Ok(res)),
            Err(error) => self.answers.classify(Err(&**error)),
        };
        if seen.verdict.is_success() {
            return Next::Done(self.succeeded(end));
        }
        match self.judge(seen) {
            Judgement::Retry(delay, facts) => {
                // The response goes now: it may hold a connection.
                let last = end.err().unwrap_or_else(|| facts.into());
                self.story.as_mut().expect("judged").last = Some(last);
                Next::Retry(delay)
            }
            Judgement::Leave => Next::Done(end),
            Judgement::GiveUp(why, facts) => Next::Done(self.give_up(why, facts, end)),
        }
    }

    #[inline]
    fn succeeded<Res>(&mut self, mut end: Result<Res, BoxError>) -> Result<Res, BoxError>
    where
        A: Classify<Res>,
    {
        if let Some(budget) = self.shared.as_ref().and_then(|shared| shared.budget.as_ref()) {
            budget.success();
        }
        if self.story.is_some()
            && let (Some(story), Ok(res)) = (self.story.take(), &mut end)
        {
            self.answers.note_retries(res, story.retried);
        }
        end
    }

    #[cold]
    fn judge(&mut self, seen: Classification<'_>) -> Judgement {
        let now = Instant::now();
        let started = self.started.unwrap_or(now);
        let mut story = self.story.take().unwrap_or_else(|| self.open(started));
        story.ran = story.ran.or(seen.ran);
        story.verdict = seen.verdict;
        let latency = now.saturating_duration_since(started);

        let attempt = story.attempt();
        let judgement = match self.decide(&mut story, seen, started, now) {
            Decision::Retry { delay } => {
                self.tell(attempt, || Event::Retry { attempt, delay, reason: seen.code, latency });
                let reason = seen.code.into();
                story.retried.push(Retried { attempt: attempt + 1, delay, reason, latency });
                Judgement::Retry(delay, Facts::of(seen))
            }
            Decision::Stop(why) => {
                if seen.verdict.is_transient() {
                    self.tell(attempt, || Event::RetryRefused { attempt, why: why.as_str() });
                }
                let used_up = why.is_used_up() && (attempt > 0 || why != Why::Attempts);
                if attempt == 0 && !used_up {
                    Judgement::Leave
                } else {
                    Judgement::GiveUp(
                        why,
                        Facts::of(Classification {
                            code: if used_up { code::RETRY_EXHAUSTED } else { seen.code },
                            ran: story.ran,
                            exhausted: seen.verdict.is_transient(),
                            ..seen
                        }),
                    )
                }
            }
        };
        self.story = Some(story);
        judgement
    }

    /// The first failure: puts together the policy that holds for this call.
    fn open(&self, first: Instant) -> Box<Story> {
        let only_codes = self.shared.as_ref().and_then(|shared| shared.only_codes.clone());
        let mut policy = self.terms.policy(only_codes);
        if let Some(spare) = &self.spare {
            let effect = self.answers.effect_of(spare);
            let by_effect = self.shared.iter().flat_map(|shared| &shared.by_effect);
            let of_effect = by_effect.filter(|(one, _)| *one == effect).map(|(_, changes)| changes);
            let RetryOverrides { call, tool } = self.answers.overrides_of(spare);
            of_effect.chain(tool).chain(call).for_each(|changes| policy.apply(changes));
        }
        let of_layer = self.shared.as_ref().and_then(|shared| shared.streams.as_ref());
        Box::new(Story {
            policy,
            stream: of_layer.map_or_else(|| Streams::of_process().deal(), Streams::deal),
            first,
            ran: Ran::No,
            verdict: Verdict::TRANSIENT,
            last: None,
            retried: Vec::new(),
            token: None,
        })
    }

    fn decide(
        &self,
        story: &mut Story,
        end: Classification<'_>,
        started: Instant,
        now: Instant,
    ) -> Decision {
        let Some(spare) = &self.spare else {
            return Decision::Stop(if end.verdict.is_transient() {
                Why::NotRepeatable
            } else {
                Why::Permanent
            });
        };
        if end.verdict.is_transient()
            && let Some(why) = self.left_alone(spare)
        {
            return Decision::Stop(why);
        }
        let failed = Failed {
            attempt: story.attempt(),
            started: story.nanos_at(started),
            now: story.nanos_at(now),
            deadline: self.deadline(story),
            end,
            ran: story.ran,
            effect: self.answers.effect_of(spare),
            repeat_safe: self.answers.is_repeat_safe(spare),
        };
        let decision = decide(&story.policy, &failed, &mut story.stream);
        let budget = self.shared.as_ref().and_then(|shared| shared.budget.as_ref());
        if let (Decision::Retry { .. }, Some(budget)) = (decision, budget) {
            story.token = budget.withdraw();
            if story.token.is_none() {
                return Decision::Stop(Why::Budget);
            }
        }
        decision
    }

    /// Whether it is not ours to retry this call at all.
    fn left_alone(&self, spare: &Req) -> Option<Why> {
        let opt_in = self.shared.as_ref().is_some_and(|shared| shared.opt_in);
        if self.answers.retries_itself(spare) {
            Some(Why::OwnRetries)
        } else if opt_in && self.answers.overrides_of(spare).call.is_none() {
            Some(Why::OptedOut)
        } else {
            None
        }
    }

    /// The call's deadline, as nanoseconds since the first attempt started.
    fn deadline(&self, story: &Story) -> Option<u64> {
        let deadline = self.answers.deadline(self.spare.as_ref()?)?;
        Some(story.nanos_at(Instant::from_std(deadline)))
    }

    /// The backoff is over and the inner service ready: the request of the next attempt.
    pub(crate) fn begin(&mut self, now: Instant) -> Result<Req, BoxError> {
        let story = self.story.as_ref().expect("an attempt failed");
        // Getting ready takes time, too.
        if let Some(why) = too_late(&story.policy, self.deadline(story), story.nanos_at(now)) {
            let facts = Facts::new(code::RETRY_EXHAUSTED, story.ran, story.verdict).exhausted();
            return Err(self.cut_short(why, |last| facts.because(last)));
        }
        let story = self.story.as_mut().expect("an attempt failed");
        if let Some(token) = story.token.take() {
            token.spend();
        }
        let copy = self.spare.as_ref().and_then(|spare| self.answers.repeat(spare));
        // A request that can be copied only so often: the last copy is the original.
        let mut req = copy.or_else(|| self.spare.take()).expect("a retry has a spare");
        self.answers.set_attempt(&mut req, story.attempt());
        self.answers.set_stamp(&mut req, Some(now.into_std()));
        self.started = Some(now);
        Ok(req)
    }

    /// The inner service will never be ready again.
    pub(crate) fn unready<Res>(&mut self, error: BoxError) -> BoxError
    where
        A: Classify<Res>,
    {
        let ran = self.story.as_ref().map_or(Ran::No, |story| story.ran);
        let seen = self.answers.classify(Err(&*error));
        let facts = Facts::of(Classification { ran, exhausted: true, ..seen }).because(error);
        self.cut_short(Why::Unready, |last| facts.after(last))
    }

    /// The attempt that was waited for does not start.
    fn cut_short(&mut self, why: Why, facts: impl FnOnce(BoxError) -> Facts) -> BoxError {
        let mut story = self.story.take().expect("an attempt failed");
        story.retried.pop();
        let attempt = story.attempt();
        self.tell(attempt, || Event::RetryRefused { attempt, why: why.as_str() });
        let last = story.last.take().expect("it failed with something");
        RetryExhausted::new(why, story.retried, facts(last)).into()
    }

    fn give_up<Res>(
        &mut self,
        why: Why,
        facts: Facts,
        end: Result<Res, BoxError>,
    ) -> Result<Res, BoxError>
    where
        A: Classify<Res>,
    {
        let Story { retried, last, .. } = *self.story.take().expect("judged");
        match end {
            Ok(mut res) => {
                if !retried.is_empty() {
                    self.answers.note_retries(&mut res, retried);
                }
                self.answers.note_attempts(&mut res, facts.ran(), facts.is_exhausted());
                Ok(res)
            }
            Err(error) => {
                let facts = facts.because(error);
                let facts = match last {
                    // A refusal says nothing of what went wrong before.
                    Some(last) if why == Why::CircuitOpen => facts.after(last),
                    _ => facts,
                };
                Err(RetryExhausted::new(why, retried, facts).into())
            }
        }
    }

    fn tell<'e>(&self, attempt: u32, event: impl FnOnce() -> Event<'e>) {
        let observer = self.shared.as_ref().and_then(|shared| shared.observer.as_ref());
        let observer = observer.filter(|observer| observer.enabled());
        if let (Some(observer), Some(spare)) = (observer, &self.spare) {
            let call = CallInfo { attempt, ..self.answers.info_of(spare) };
            observer.on_event(&call, &event());
        }
    }
}

impl Story {
    /// The attempt that runs or ran last, from 0.
    fn attempt(&self) -> u32 {
        u32::try_from(self.retried.len()).unwrap_or(u32::MAX)
    }

    fn nanos_at(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.first))
    }
}
