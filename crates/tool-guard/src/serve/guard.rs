//! The stack around the tools, behind envelopes.
use super::checks::{Asker, Checks};
use crate::{
    engine::{
        check::Made,
        settling::CallRecords,
        setup::{Setup, timed},
        stores::Records,
    },
    servers::endpoint::Upstream,
};
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tool_reliability::{
    Envelopes, EnvelopesLayer,
    config::Live,
    envelopes::{Canceller, EnvelopeRequest},
    loopguard,
    telemetry::Signals,
};
use tower::Layer as _;
use tr_core::{Capability, call::CallContext};

/// The tools behind the stack.
pub(super) type Tools = Envelopes<Checks>;

/// What a front needs.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) tools: Tools,
    pub(super) live: Live,
    canceller: Canceller,
}

/// An order to cancel running calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    cancel: String,
    #[serde(default)]
    target: Target,
}

/// Whose calls, as in BS-TIM-5.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Target {
    session_key: Option<Box<str>>,
    actor_id: Option<Box<str>>,
    tenant_id: Option<Box<str>>,
    workspace_id: Option<Box<str>>,
}

impl Guard {
    /// # Errors
    /// If the settings are out of range.
    pub(super) fn new(
        setup: Setup,
        loops: loopguard::Mode,
        records: Records,
        upstream: Upstream,
        signals: &Signals,
        max_body: usize,
    ) -> anyhow::Result<Self> {
        let configured = setup.config.idempotency.clone();
        let guards = setup.guards_loops(loops);
        let instance = records.store.is_some().then(|| records.instance.clone());
        let keeps_answers = records.keep_answers;
        let live = Live::new(setup.config, |builder| {
            builder
                .idempotency(|layer| records.keep(timed(layer, &configured)))
                .loop_guard(|guard| guard.mode(loops).enabled(guards))
                .telemetry(signals.clone())
        });
        let live = live.context("the configuration cannot be used")?;
        let layer = EnvelopesLayer::builder().live(live.clone()).max_request_bytes(max_body);
        let layer = layer.build()?;
        let canceller = layer.canceller();
        let stack = live.stack().service(upstream.clone());
        let records = CallRecords(live.stack().records());
        let (asked, made) = (live.clone(), Made::default());
        let asker = Asker { upstream, live: asked, records, instance, keeps_answers, made };
        let tools = layer.layer(Checks { stack, asker: Arc::new(asker) });
        Ok(Self { tools, live, canceller })
    }

    /// Carries out an order, on behalf of `context`, which comes before what the order says.
    pub(super) fn cancel(&self, order: Cancel, context: CallContext) -> Value {
        let Cancel { cancel: id, target } = order;
        let mut whose = context;
        whose.session = whose.session.or(target.session_key);
        whose.actor = whose.actor.or(target.actor_id);
        whose.tenant = whose.tenant.or(target.tenant_id);
        whose.workspace = whose.workspace.or(target.workspace_id);
        let cancelled = self.canceller.cancel(&whose, &id);
        json!({ "cancel": id, "cancelled": cancelled })
    }

    /// The answer to the capability query: what is declared of the tools that can be called.
    pub(super) fn declared(&self) -> Value {
        let catalog = self.live.catalog();
        let known = catalog.endpoints().filter_map(|(tool, _)| catalog.get(tool));
        let tool = |tool: &Arc<tr_core::ToolManifest>| {
            let capabilities = [
                ("streaming", Capability::Streaming),
                ("idempotency", Capability::Idempotency),
                ("caching", Capability::Caching),
                ("own_retries", Capability::OwnRetries),
            ];
            let has = capabilities.iter().filter(|(_, one)| tool.can(*one));
            json!({
                "tool": tool.tool.name(),
                "action": tool.tool.action().unwrap_or_default(),
                "namespace": tool.tool.namespace().unwrap_or_default(),
                "effect": tool.effect.unwrap_or_else(|| catalog.undeclared_effect()),
                "capabilities": has.map(|(name, _)| *name).collect::<Vec<_>>(),
                "timeoutMs": tool.timeout.map(|timeout| timeout.as_millis() as u64),
                "inputSchema": tool.input_schema,
            })
        };
        json!({ "tools": known.map(tool).collect::<Vec<_>>() })
    }
}

/// A request of a caller.
pub(super) fn request(body: bytes::Bytes, context: CallContext) -> EnvelopeRequest {
    EnvelopeRequest::from(body).on_behalf_of(context)
}
