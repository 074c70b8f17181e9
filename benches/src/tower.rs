//! The same work under tower's own layers.
use crate::{
    call,
    kind::Kind,
    run::{Comes, Run},
};
use std::{
    future::{Ready, ready},
    sync::Arc,
    time::Duration,
};
use tower::{
    ServiceBuilder,
    retry::{
        Policy, Retry,
        budget::{Budget, TpsBudget},
    },
};

/// Four attempts, as ours has, and a budget if there is one.
#[derive(Clone, Debug)]
struct Attempts {
    left: u32,
    budget: Option<Arc<TpsBudget>>,
}

impl Attempts {
    const fn without_budget() -> Self {
        Self { left: 3, budget: None }
    }

    fn with_budget() -> Self {
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

/// Retry, success at once.
#[must_use]
pub fn retry<K: Kind>() -> Run {
    let service = Retry::new(Attempts::without_budget(), K::Leaf::default());
    Run::service(Comes::Through, service, K::same())
}

/// Retry with a `TpsBudget`, success at once.
#[must_use]
pub fn budget<K: Kind>() -> Run {
    let service = Retry::new(Attempts::with_budget(), K::Leaf::default());
    Run::service(Comes::Through, service, K::same())
}

/// Timeout.
#[must_use]
pub fn timeout<K: Kind>() -> Run {
    let service =
        ServiceBuilder::new().timeout(Duration::from_secs(10)).service(K::Leaf::default());
    Run::service(Comes::Through, service, K::same())
}

/// Timeout, retry with a budget, concurrency limit.
#[must_use]
pub fn stack() -> Run {
    let service = ServiceBuilder::new()
        .timeout(Duration::from_secs(10))
        .retry(Attempts::with_budget())
        .concurrency_limit(100)
        .service(call::Leaf);
    Run::service(Comes::Through, service, call::unique(0))
}
