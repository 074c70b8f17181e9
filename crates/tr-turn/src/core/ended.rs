//! The part of [`Core`] that handles ends: of a call, and of the turn's time.
use super::Core;
use crate::{
    decide::{Cause, FailedCall, Recovery},
    error::{Stopped, Why},
    planner::Step,
    report::{CutShort, Failure, Report},
    running::{End, RunContext},
    summary::words,
    trace::{
        Fact, Outcome, Run,
        log::{Failed, Notes},
    },
};
use std::{error::Error, iter, sync::Arc, time::Duration};
use tokio::time::Instant;
use tool_reliability::{retry::RetryExhausted, timeout::DeadlineExceeded};
use tr_core::{BoxError, Effect, FailureInfo, Ran, ToolOutcome, Verdict, code, failure_info, find};

impl Core {
    /// Handles any end of a call.
    pub(crate) fn ended(&mut self, now: Instant, index: usize, context: &RunContext, end: End) {
        let run = &context.run;
        let (end, made) = match end {
            End::Answered(Ok(outcome)) if outcome.is_unkept() => {
                (Err(Stopped::from(Why::NotKept).into()), outcome.retried().len() + 1)
            }
            End::Answered(Ok(outcome)) if outcome.error().is_none() => {
                return self.succeeded(now, index, run, outcome);
            }
            // The deadline that an inner layer enforced is the call's own timeout: reported as that
            // timeout.
            End::Answered(Err(error)) if is_past(context, now, &error) => {
                let ran = failure_info(&*error).map_or(Ran::Unknown, FailureInfo::ran);
                return self.timed_out(now, index, context, ran);
            }
            End::Answered(Ok(outcome)) => {
                let made = outcome.retried().len() + 1;
                (Ok(outcome), made)
            }
            End::Answered(Err(error)) => {
                let made = find::<RetryExhausted>(&*error).map_or(1, RetryExhausted::attempts);
                (Err(error), made)
            }
            End::TimedOut(ran) => return self.timed_out(now, index, context, ran),
            End::Cancelled(ran) => {
                (Err(Stopped::from(Why::Cancelled(ran)).into()), usize::from(ran != Ran::No))
            }
            End::Panicked => (Err(Stopped::from(Why::Panicked).into()), 1),
        };
        self.fell(now, index, run, context.effect, end, made);
    }

    /// Handles a call that timed out.
    fn timed_out(&mut self, now: Instant, index: usize, context: &RunContext, ran: Ran) {
        let (run, made) = (&context.run, usize::from(ran != Ran::No));
        let after = context.until.map_or(Duration::MAX, |(_, limit)| limit);
        if now < self.deadline {
            run.push(now, run.notes().attempts.max(1), Fact::ToolTimeout { after });
        }
        let error = Stopped::from(Why::Call(after, ran));
        self.fell(now, index, run, context.effect, Err(error.into()), made);
    }

    fn succeeded(&mut self, now: Instant, index: usize, run: &Run, outcome: ToolOutcome) {
        let retried = u32::try_from(outcome.retried().len()).unwrap_or(u32::MAX);
        let made = if outcome.from_cache() { 0 } else { retried.saturating_add(1) };
        let attempts = match run.notes() {
            Notes { attempts: 0, .. } => made,
            notes => notes.made(),
        };
        let message = match attempts {
            0 | 1 => "Tool succeeded".into(),
            attempt => format!("Tool succeeded on retry {attempt}").into(),
        };
        let report = &mut self.calls[index];
        report.attempts = report.attempts.saturating_add(attempts);
        (report.outcome, report.ran) = (Outcome::Success, report.ran.or(Ran::Yes));
        (report.answer, report.failure, report.decision) = (Some(outcome), None, None);
        report.ended = self.log.since(now);
        let ran = report.ran;
        run.push(now, attempts, Fact::ToolOutcome { outcome: Outcome::Success, ran, message });
        self.planner.succeeded(index, &mut self.steps);
        self.take_steps(now);
    }

    /// Handles a call that failed, was cancelled or could not start.
    pub(super) fn fell(
        &mut self,
        now: Instant,
        index: usize,
        run: &Arc<Run>,
        effect: Effect,
        end: Result<ToolOutcome, BoxError>,
        made: usize,
    ) {
        let failed = Failed::of(end.as_ref()).expect("it failed");
        let found = failed.finding(run.manifest.as_deref()).end;
        let (verdict, ran) = (found.verdict, found.ran);
        let notes = run.notes();
        // The recorder's count of attempts is exact, also if it is zero.
        let attempts = match notes {
            Notes { attempts: 0, errors: 0, .. } => u32::try_from(made).unwrap_or(u32::MAX),
            notes => notes.made(),
        };
        let timed_out = is_timeout(failed, found.code);
        let cut_short = match verdict {
            Verdict::Cancelled => self.canceller.turn.is_cancelled(),
            _ => timed_out && now >= self.deadline,
        };
        let report = &mut self.calls[index];
        report.attempts = report.attempts.saturating_add(attempts);
        report.ran = report.ran.or(ran);
        if cut_short {
            // The deadline of the call was that of the turn, which ends all calls together.
            self.late.push((index, ran, effect, run.clone()));
            return;
        }
        report.outcome = match verdict {
            Verdict::Cancelled => Outcome::Cancelled,
            _ if timed_out => Outcome::TimedOut,
            _ => Outcome::Failed,
        };
        let (code, message) = run.shown(found.code, failed);
        report.failure = Some(Failure { code, message, verdict });
        if notes.errors == 0 {
            run.failed(now, attempts, failed, self.breaker(run));
        }
        let cause = match verdict {
            Verdict::Cancelled => Cause::Cancelled,
            verdict => Cause::Failed(verdict),
        };
        self.calls[index].answer = end.ok();
        self.planner.fell(index, FailedCall::new(cause, ran, effect), &mut self.steps);
        self.take_steps(now);
    }

    /// Ends all calls that have not ended, and the turn. `running` says of each running call
    /// whether its tool ran.
    pub(crate) fn expire<'r>(
        &mut self,
        now: Instant,
        cut_short: CutShort,
        running: impl Iterator<Item = (usize, Ran, &'r RunContext)>,
    ) -> Report {
        let cause = match cut_short {
            CutShort::TimedOut => Cause::TurnTimeout,
            CutShort::Cancelled => Cause::Cancelled,
        };
        let mut falls: Vec<Option<(Ran, Effect)>> = vec![None; self.calls.len()];
        let after = self.plan.limits().timeout;
        let mut failure = |index: usize, ran: Ran, effect: Effect, run: &Run, attempts: u32| {
            if cut_short == CutShort::TimedOut {
                run.push(now, attempts, Fact::ToolTimeout { after });
            }
            falls[index] = Some((ran, effect));
        };
        for (index, ran, context) in running {
            let attempts = context.run.notes().made().max(u32::from(ran != Ran::No));
            let report = &mut self.calls[index];
            report.attempts = report.attempts.saturating_add(attempts);
            report.ran = report.ran.or(ran);
            failure(index, ran, context.effect, &context.run, attempts);
        }
        for (index, ran, effect, run) in self.late.drain(..) {
            failure(index, ran, effect, &run, run.notes().made());
        }
        let fall_of = |index: usize| falls[index].expect("what runs has a future, or has ended");
        self.planner.expire(cause, fall_of, &mut self.steps);
        self.take_steps(now);
        self.report(now, Some(cut_short))
    }

    /// Records the planner's decisions.
    pub(super) fn take_steps(&mut self, now: Instant) {
        for step in std::mem::take(&mut self.steps) {
            self.take_step(now, &step);
        }
    }

    fn take_step(&mut self, now: Instant, step: &Step) {
        let plan = self.plan.clone();
        let node = &plan.nodes()[step.call];
        self.note_fall(step, &plan);
        let report = &mut self.calls[step.call];
        (report.decision, report.ended) = (Some(step.decision), self.log.since(now));
        let (tool, ran, outcome) = (report.tool.clone(), report.ran, report.outcome);
        let attempt = report.attempts;
        let push = |fact| self.log.push(now, Some((&node.name, &tool)), attempt, fact);
        push(Fact::RecoveryDecision {
            decision: step.decision.recovery.as_str(),
            reason: step.decision.reason.into(),
            delay: None,
        });
        if step.decision.recovery == Recovery::UseAlternative {
            return;
        }
        let message = match (outcome, node.required, step.failure.cause) {
            (Outcome::Skipped, true, Cause::Dependency) => {
                "Required tool skipped due to dependency failure"
            }
            (Outcome::Skipped, _, Cause::Dependency) => "Skipped (dependency failed)",
            (Outcome::Skipped, ..) => "Skipped (no such tool)",
            (Outcome::TimedOut, ..) => "Tool timed out",
            (Outcome::Cancelled, ..) => "Tool cancelled",
            _ => "Tool failed",
        };
        push(Fact::ToolOutcome { outcome, ran, message: message.into() });
        if step.decision.recovery == Recovery::Escalate {
            let failure = self.calls[step.call].failure.as_ref();
            let why = failure.map_or("", |failure| &failure.message);
            let may_have_run = match (ran, step.failure.effect) {
                (Ran::Unknown, Effect::Mutating | Effect::Idempotent) => " (it may have run)",
                _ => "",
            };
            let what = match outcome {
                Outcome::Skipped => "was skipped",
                Outcome::TimedOut => "timed out",
                Outcome::Cancelled => "was cancelled",
                _ => "failed",
            };
            let message = format!("{} {what}: {why}{may_have_run}", words(&node.name)).into();
            push(Fact::Escalated { message });
        }
    }

    /// Records why a call that did not end by itself has no result.
    fn note_fall(&mut self, step: &Step, plan: &crate::Plan) {
        let report = &mut self.calls[step.call];
        let (outcome, why) = match step.failure.cause {
            Cause::Dependency => {
                let of = step.of.map_or("", |of| &plan.nodes()[of].name);
                (Outcome::Skipped, Why::Dependency(of.into()))
            }
            Cause::NoTool => (Outcome::Skipped, Why::NoTool((&*report.tool).into())),
            Cause::TurnTimeout => {
                let after = plan.limits().timeout;
                (Outcome::TimedOut, Why::Turn(after, step.failure.ran))
            }
            Cause::Cancelled => (Outcome::Cancelled, Why::Cancelled(step.failure.ran)),
            Cause::Failed(_) => return,
        };
        let stopped = Stopped::from(why);
        let found = tr_core::failure_info(&stopped).expect("it says so");
        report.failure = Some(Failure {
            code: found.code().into(),
            message: self.log.shown(&stopped.to_string()),
            verdict: found.verdict(),
        });
        report.outcome = outcome;
    }
}

/// Whether the call ended by its own deadline.
fn is_past(context: &RunContext, now: Instant, error: &BoxError) -> bool {
    context.until.is_some_and(|(at, _)| now >= at) && find::<DeadlineExceeded>(&**error).is_some()
}

/// Whether the last attempt timed out, whatever the error of the call.
fn is_timeout(failed: Failed<'_>, code: &str) -> bool {
    let in_chain = |error: &(dyn Error + 'static)| {
        iter::successors(Some(error), |&error| error.source())
            .filter_map(|error| error.downcast_ref::<FailureInfo>())
            .any(|facts| facts.code() == code::TIMEOUT)
    };
    code == code::TIMEOUT || matches!(failed, Failed::Error(error) if in_chain(error))
}
