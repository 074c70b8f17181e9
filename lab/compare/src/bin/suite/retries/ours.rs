//! Our retries.
use super::{Plan, Retrier, Tool};
use futures_util::TryFutureExt as _;
use std::sync::Arc;
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{Effect, Params, ToolCall, ToolOutcome};
use tr_retry::{Budget, RetryConfig, RetryLayer};

pub(super) fn retrier(plan: &Plan) -> Result<Retrier, &'static str> {
    let mut config = RetryConfig::default();
    config.attempts = plan.attempts;
    config.base = plan.base;
    config.cap = None;
    let mut builder = RetryLayer::builder().config(config);
    if let Some(per_success) = plan.budget {
        let budget = Budget::builder().per_success(per_success.into()).capacity(super::SAVED);
        builder = builder.budget(budget.build().map_err(|_| "refuses this budget")?);
    }
    let layer = builder.build().map_err(|_| "refuses this plan")?;
    Ok(Arc::new(move |tool: Tool| {
        let service =
            layer.layer(service_fn(move |_: ToolCall| tool().map_ok(|()| ToolOutcome::default())));
        let call = ToolCall::new("tool", Params::empty_object()).effect(Effect::ReadOnly);
        Box::pin(service.oneshot(call).map_ok(drop))
    }))
}
