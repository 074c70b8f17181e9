//! The start of a call: its identity, the calls that block it, and its record.
use super::Proxy;
use crate::mcp::{
    Mode,
    answer::Repeatable,
    call::{Request, Trace},
    failure::Failure,
    unknowns,
};
use std::sync::Arc;
use tower::ServiceExt;
use tr_core::{
    CallParts, DefaultPolicy, Effect, RequestPolicy, RetryOverride, ToolCall, call::Attachment,
};

impl Proxy {
    pub(super) fn start(&mut self, request: Request) {
        let Request { call: mut mcp, tool, arguments, identity, continues, traceparent, said } =
            request;
        let mut parts = CallParts::new(&*tool, arguments);
        parts.own_params = true;
        parts.request_id = Some(mcp.id().to_string().into());
        parts.idempotency.continues = continues;
        parts.trace.traceparent = traceparent;
        parts.retry =
            self.host_runs.then(|| RetryOverride { attempts: Some(1), ..RetryOverride::default() });
        self.watching.attribute(&mut parts, &said);
        parts.turn = said.turn;
        let mut call = ToolCall::from(parts);
        let known = self.effects().of(&tool);
        if let Some((manifest, said)) = known {
            call = call.manifested(manifest);
            if let Some(effect) = said {
                let parts = call.parts_mut();
                (parts.effect, parts.effect_declared) = (effect, true);
            }
        }
        let undeclared = self.effects().undeclared(&tool);
        if !call.parts().effect_declared
            && let Some(effect) = undeclared
        {
            call.parts_mut().effect = effect;
        }
        let effect = DefaultPolicy.effect(&call);
        let is_keyed = identity.is_keyed();
        identity.put_into(&mut call, &self.client, effect);
        let own = call.parts().idempotency.id.map(|id| id.key);
        self.key = own;
        if let Some(own) = own.filter(|_| self.mode == Mode::Enforce) {
            self.wire.lock().in_flight.name(mcp.id(), own);
        }
        let store = self.wire.store().filter(|_| effect == Effect::Mutating);
        mcp.trace = Trace {
            record: own.filter(|_| store.is_some() && !call.parts().idempotency.in_process),
            equals: (effect == Effect::Mutating)
                .then(|| self.wire.unknowns.equals(self.client.equals(&call), own)),
            is_of_caller: self.client.is_over_http(),
        };
        let mcp = Arc::new(mcp);
        call.parts_mut().attachment = Attachment::new(mcp.clone());
        let repeatable = Repeatable::of(&call);
        let counted = self.watching.begin(&mcp, &call);
        if self.mode == Mode::Enforce
            && self.wire.lock().gone
            && mcp.trace.record.is_none()
            && self.wire.claim_of(&call).is_none()
        {
            // No layer may retry it, delay it or count it for a breaker. A recorded end of the same call
            // is still returned.
            let refused = Err(Failure::SERVER_GONE_BEFORE.into());
            if let Some(counted) = counted {
                counted.end(&refused);
            }
            return self.on_step(Some((mcp, repeatable, refused)));
        }
        // A caller that gives it a key of its own declares that it is intended. A host that runs its tools may
        // have been forbidden to make the earlier call.
        let is_declared = || call.parts().effect_declared || self.effects().is_harmful(&tool);
        let may_bar = !is_keyed && (!self.host_runs || is_declared());
        let barring = mcp.trace.equals.filter(|_| self.mode == Mode::Enforce && may_bar);
        let bars = barring.and_then(|it| Some((it.key, self.wire.unknowns.bars(&it.key, own)?)));
        let (stack, wire) = (self.stack.clone(), self.wire.clone());
        let is_in_conversation = self.client.is_in_conversation(&call);
        let run = async move {
            let mut barred = None;
            if let Some((equals, by)) = bars {
                barred = match &store {
                    Some(store) => wire.unknowns.still(by, &equals, own, store).await,
                    None => Some(by),
                };
            }
            let compares = barring.is_some() && is_in_conversation && barred.is_none();
            let barred = match store.filter(|_| compares) {
                Some(store) => unknowns::in_store(&store, &call).await,
                None => Ok(barred),
            };
            let end = match barred {
                Ok(Some(barred)) => Err(barred.of(&call).into()),
                Ok(None) => stack.oneshot(call).await,
                Err(not_compared) => Err(not_compared.into()),
            };
            if let Some(counted) = counted {
                counted.end(&end);
            }
            (mcp, repeatable, end)
        };
        let finished = self.calls.begin(Box::pin(run));
        self.on_step(finished);
    }
}
