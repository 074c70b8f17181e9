//! Retry: tower, tower-resilience.
use crate::{
    kind::Kind,
    run::{Comes, Run},
};
use std::{
    future::{Ready, ready},
    sync::Arc,
    time::Duration,
};
use tower::{
    Layer,
    retry::{
        Policy, Retry,
        budget::{Budget, TpsBudget},
    },
};
use tower_resilience::retry::RetryLayer;

/// Four attempts, as ours has, and a budget if there is one.
#[derive(Clone, Debug)]
pub(super) struct Attempts {
    left: u32,
    budget: Option<Arc<TpsBudget>>,
}

impl Attempts {
    pub(super) const fn without_budget() -> Self {
        Self { left: 3, budget: None }
    }

    pub(super) fn with_budget() -> Self {
        Self { left: 3, budget: Some(Arc::default()) }
    }
}

impl<Q: Clone, T, E> Policy<Q, T, E> for Attempts {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Q, end: &mut Result<T, E>) -> Option<Ready<()>> {
        if end.is_ok() {
            if let Some(budget) = &self.budget {
                budget.deposit();
            }
            return None;
        }
        if self.budget.as_ref().is_some_and(|budget| !budget.withdraw()) {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Q) -> Option<Q> {
        Some(request.clone())
    }
}

/// tower, success at once.
#[must_use]
pub fn tower<K: Kind>() -> Run {
    Run::service(
        Comes::Through,
        Retry::new(Attempts::without_budget(), K::Leaf::default()),
        K::same(),
    )
}

/// tower with its `TpsBudget`, success at once.
#[must_use]
pub fn tower_budget<K: Kind>() -> Run {
    Run::service(Comes::Through, Retry::new(Attempts::with_budget(), K::Leaf::default()), K::same())
}

pub(super) fn layer<Q, T, E>() -> RetryLayer<Q, T, E> {
    RetryLayer::<Q, T, E>::builder()
        .name("bench")
        .max_attempts(4)
        .exponential_backoff(Duration::from_millis(200))
        .build()
}

/// tower-resilience, success at once.
#[must_use]
pub fn tower_resilience<K: Kind>() -> Run {
    let service = layer::<K::Request, K::Answer, K::Error>().layer(K::Leaf::default());
    Run::service(Comes::Through, service, K::same())
}
