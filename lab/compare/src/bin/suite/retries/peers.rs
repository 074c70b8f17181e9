//! Their retries, each set up by its own means and with its own jitter.
use super::{Plan, Retrier, SAVED, Tool};
use ::backon::{ExponentialBuilder, Retryable as _};
use ::tower::{
    Layer, ServiceExt,
    retry::{
        Policy, Retry,
        backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff as _},
        budget::{Budget as _, TpsBudget},
    },
    service_fn,
    util::rng::HasherRng,
};
use std::{sync::Arc, time::Duration};
use tower_resilience::retry::{ExponentialRandomBackoff, RetryBudgetBuilder, RetryLayer};
use tr_core::{BoxError, Verdict};

const LONGEST: Duration = Duration::from_secs(3600);

pub(super) fn tower_resilience(plan: &Plan) -> Result<Retrier, &'static str> {
    let backoff =
        ExponentialRandomBackoff::new(plan.base, 0.5).map_err(|_| "refuses this jitter")?;
    let mut builder = RetryLayer::<Tool, (), BoxError>::builder()
        .name("suite")
        .max_attempts(plan.attempts as usize)
        .backoff(backoff);
    if let Some(per_success) = plan.budget {
        // In tenths of a retry, as its deposits are whole numbers.
        let saved = 10 * SAVED as usize;
        let budget = RetryBudgetBuilder::new()
            .aimd()
            .deposit_amount((per_success * 10.0).round() as usize)
            .withdraw_amount(10)
            .min_budget(saved)
            .max_budget(saved);
        builder = builder.budget(budget.build().map_err(|_| "refuses this budget")?);
    }
    let layer = builder.build();
    Ok(Arc::new(move |tool| Box::pin(layer.layer(service_fn(|tool: Tool| tool())).oneshot(tool))))
}

/// As tower's documentation builds one: a backoff, and a budget if there is one.
#[derive(Clone)]
struct Waiting {
    left: u32,
    backoff: ExponentialBackoff,
    budget: Option<Arc<TpsBudget>>,
}

impl<T> Policy<Tool, T, BoxError> for Waiting {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, _: &mut Tool, end: &mut Result<T, BoxError>) -> Option<Self::Future> {
        if end.is_ok() {
            self.budget.iter().for_each(|budget| budget.deposit());
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        let is_granted = self.budget.as_ref().is_none_or(|budget| budget.withdraw());
        is_granted.then(|| self.backoff.next_backoff())
    }

    fn clone_request(&mut self, tool: &Tool) -> Option<Tool> {
        Some(tool.clone())
    }
}

pub(super) fn tower(plan: &Plan) -> Result<Retrier, &'static str> {
    let maker = ExponentialBackoffMaker::new(plan.base, LONGEST, 0.99, HasherRng::new());
    let backoff = maker.map_err(|_| "refuses this backoff")?.make_backoff();
    // What is saved is a reserve per second of the ten that it looks back.
    let budget = plan
        .budget
        .map(|share| Arc::new(TpsBudget::new(Duration::from_secs(10), SAVED / 10, share)));
    let policy = Waiting { left: plan.attempts - 1, backoff, budget };
    let service = Retry::new(policy, service_fn(|tool: Tool| tool()));
    Ok(Arc::new(move |tool| Box::pin(service.clone().oneshot(tool))))
}

pub(super) fn backon(plan: &Plan) -> Result<Retrier, &'static str> {
    if plan.budget.is_some() {
        return Err("no budget");
    }
    let backoff = ExponentialBuilder::default()
        .with_jitter()
        .with_min_delay(plan.base)
        .with_max_delay(LONGEST)
        .with_max_times(plan.attempts as usize - 1);
    Ok(Arc::new(move |tool| {
        let retrying = (move || tool()).retry(backoff);
        Box::pin(retrying.adjust(|error, delay| delay.map(|delay| hint(error).unwrap_or(delay))))
    }))
}

/// What its documentation has one read from an HTTP client's error.
fn hint(error: &BoxError) -> Option<Duration> {
    match tr_core::failure_info(&**error)?.verdict() {
        Verdict::Transient { retry_after } => retry_after,
        _ => None,
    }
}
