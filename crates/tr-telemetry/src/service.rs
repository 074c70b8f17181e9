//! [`Telemetry`]: starts a [`Watch`] for each call or attempt that is observed.
use crate::{
    future::TelemetryFuture,
    log::{self, Record},
    notes::{self, Notes},
    redact::Hidden,
    shape,
    signals::Core,
    spans::{self, Emitted},
    watch::{CallReport, Counted, Report, Text, Watch, without},
};
use opentelemetry::{Context as Trace, KeyValue, trace::TraceContextExt as _};
use std::{
    cell::LazyCell,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower_service::Service;
use tr_core::{
    BoxError, CallInfo, DefaultPolicy, RequestPolicy, ResponsePolicy, chunks::Chunks,
    internal::Shard,
};

/// What one request of the layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    Call,
    Attempt,
}

/// Reports calls or attempts, and decides nothing. Made by a
/// [`TelemetryLayer`](crate::TelemetryLayer).
#[derive(Clone, Debug)]
pub struct Telemetry<S, A = DefaultPolicy> {
    inner: S,
    core: Shard<Core>,
    observed: Observed,
    policy: A,
}

impl<S, A> Telemetry<S, A> {
    pub(crate) const fn new(inner: S, core: Shard<Core>, observed: Observed, policy: A) -> Self {
        Self { inner, core, observed, policy }
    }
}

impl<S, A, Req> Service<Req> for Telemetry<S, A>
where
    S: Service<Req, Error: Into<BoxError>>,
    A: RequestPolicy<Req> + ResponsePolicy<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = TelemetryFuture<S::Future, A>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, req: Req) -> Self::Future {
        self.core.settle();
        let start = Start { core: &self.core, policy: &self.policy, req: &req };
        let watch = match self.observed {
            Observed::Call => self.core.is_enabled().then(|| start.watched_call()),
            // Worth watching if its span is recorded, or if its call takes notes.
            Observed::Attempt if self.core.tracer.is_some() || notes::are_taken() => {
                start.watched_attempt()
            }
            Observed::Attempt => None,
        };
        let Some(mut watch) = watch else {
            return TelemetryFuture::new(self.inner.call(req), None, self.policy.clone());
        };
        // Inner layers may refuse in `call`, and report it to an observer.
        let inner = watch.within(|| self.inner.call(req));
        TelemetryFuture::new(inner, Some(watch), self.policy.clone())
    }
}

/// The start of one request: decides whether it is observed, and reads what is reported of it.
struct Start<'c, A, Req> {
    core: &'c Shard<Core>,
    policy: &'c A,
    req: &'c Req,
}

impl<A, Req> Start<'_, A, Req>
where
    A: RequestPolicy<Req>,
{
    // Not inlined: most calls are not observed.
    #[inline(never)]
    fn watched_call(&self) -> Watch {
        let core = &**self.core;
        let logs = core.logs_enabled();
        let context = self.span("tool_execution");
        let emits = |cx: Trace| match cx.span().is_recording() {
            true => cx.with_value(Emitted::default()),
            false => cx,
        };
        let context = context.map(emits);
        let is_recording = context.as_ref().is_some_and(|cx| cx.span().is_recording());
        let is_described = logs || is_recording;
        let hidden = if is_described { self.hidden() } else { None };
        let report = if is_described {
            let span = context.as_ref().filter(|_| is_recording);
            Report::Call(self.describe(logs, span, hidden.as_deref()))
        } else {
            Report::None
        };
        let counted = core.metrics.as_ref().map(|metrics| {
            let named = || (self.policy.info(self.req).tool, self.policy.action(self.req));
            let series = metrics.of_call(self.policy.key(self.req), named);
            match core.shadow {
                true => Counted::Shadow(series),
                false => Counted::Call(series, self.policy.scope(self.req)),
            }
        });
        let since = (is_described || counted.is_some()).then(Instant::now);
        let CallInfo { effect, repeat_safe, .. } = self.policy.info(self.req);
        let chunks = self.policy.chunks(self.req).map(Chunks::watching);
        let is_over = false;
        Watch { since, counted, context, report, effect, repeat_safe, hidden, chunks, is_over }
    }

    /// What must not be shown of the call.
    fn hidden(&self) -> Option<Box<Hidden>> {
        let names = self.policy.sensitive_fields(self.req);
        let params = || self.policy.params(self.req);
        (!names.is_empty()).then(|| Box::new(Hidden::new(names, params())))
    }

    #[inline(never)]
    fn watched_attempt(&self) -> Option<Watch> {
        let context = self.span("tool_attempt");
        let is_recording = context.as_ref().is_some_and(|cx| cx.span().is_recording());
        let info = self.policy.info(self.req);
        let CallInfo { effect, repeat_safe, .. } = info;
        let is_noted = is_recording || notes::are_taken();
        if !is_noted && context.is_none() {
            return None;
        }
        let core = context.as_ref().filter(|_| is_recording).map(|cx| {
            let tool = String::from(self.core.redact_id(info.tool));
            cx.span().set_attribute(KeyValue::new("tool.name", tool));
            self.core.clone()
        });
        let report = match is_noted {
            true => Report::Attempt(core, info.attempt.saturating_add(1)),
            false => Report::None,
        };
        let hidden = if is_recording { self.hidden() } else { None };
        let (since, counted, is_over) = (None, None, false);
        let chunks = self.policy.chunks(self.req).filter(|_| is_noted).map(Chunks::watching);
        let watch =
            Watch { since, counted, context, report, effect, repeat_safe, hidden, chunks, is_over };
        Some(watch)
    }

    fn span(&self, name: &'static str) -> Option<Trace> {
        let tracer = self.core.tracer.as_deref()?;
        let remote = || self.policy.traceparent(self.req).and_then(spans::parse);
        Some(spans::start(tracer, name, remote))
    }

    /// Reads what events and the span contain of the call, and writes what they say at its start.
    #[cold]
    fn describe(
        &self,
        logs: bool,
        span: Option<&Trace>,
        hidden: Option<&Hidden>,
    ) -> Box<CallReport> {
        let info: CallInfo<'_> = self.policy.info(self.req);
        let text = |text: &str| Text::new(self.core, hidden, text);
        let key_hash = self.policy.key_fingerprint(self.req, &self.core.fingerprints);
        let report = Box::new(CallReport {
            core: self.core.clone(),
            logs,
            notes: Notes { key_hash, ..Notes::default() },
            tool: Text::new(self.core, None, info.tool),
            action: self.policy.action(self.req).map(text),
            request_id: info.request_id.map(text),
            session: info.session.map(text),
            correlation: info.correlation.map(text),
            trace: self.policy.trace_id(self.req).filter(|_| self.core.utee).map(text),
        });
        if let Some(span) = span {
            let span = span.span();
            let text = |key, value: &str| span.set_attribute(KeyValue::new(key, value.to_owned()));
            let tool = report.tool.shown(self.core);
            text("tool.name", tool);
            text("gen_ai.operation.name", "execute_tool");
            text("gen_ai.tool.name", tool);
            if let Some(id) = info.tool_call_id {
                text("gen_ai.tool.call.id", &self.core.redact_id(&without(hidden, id)));
            }
            if let Some(hash) = key_hash {
                text("idempotency.key", &hash.to_string());
            }
        }
        if logs {
            self.log_start(&report, hidden);
        }
        report
    }

    fn log_start(&self, report: &CallReport, hidden: Option<&Hidden>) {
        let shown = self.core.shown.get(self.policy.info(self.req).tool);
        let is_described = self.core.shapes || shown.is_some();
        let params = self.policy.params(self.req).filter(|_| is_described);
        let shown = shown.map_or(&[][..], |names| names);
        let shape = LazyCell::new(|| {
            params.map(|params| shape::of(params, &*self.core.redactor, hidden, shown))
        });
        log::info(|| Record {
            event: "tool_call_start",
            state: Some("inflight"),
            attempt: Some(1),
            elapsed: Some(Duration::ZERO),
            from_cache: Some(false),
            params: shape.as_deref(),
            params_bytes: params.map(|params| params.len() as u64),
            params_digest: params.map(|params| self.core.fingerprints.fingerprint(params)),
            ..report.record()
        });
    }
}
