//! The start of a call: its identity, the calls that block it, and its record.
use super::{Finished, Proxy};
use crate::engine::{
    check::Checked,
    equal_calls::{Call, Uncut, equals, own_id},
    failure::Failure,
    identified::{self, PARAMS, noted},
    identity::{self, Identity},
    options::Mode,
    request::Request,
    server_key,
    settling::End,
    tool::ServerLink,
    unknown_records::{self, ALIKE},
    unknowns::{BlockedByEqual, Trace},
    warnings::Repeatable,
};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::{fmt::Write as _, future::ready, process, sync::Arc};
use tower::{Layer as _, ServiceExt, service_fn};
use tr_core::{
    BoxError, CallParts, DefaultPolicy, Effect, RequestPolicy, RetryOverride, ToolCall,
    call::Attachment, canonical::Digest, internal::lock, printable,
};

/// How much of a param's value a record shows, in characters.
const SHOWN: usize = 200;

impl Proxy {
    pub(super) fn start(&mut self, request: Request) -> Option<Finished> {
        let Request { call: mut mcp, arguments, mut identity, continues, traceparent, said } =
            request;
        let tool = mcp.tool.clone();
        let mut parts = CallParts::new(&*tool, arguments);
        parts.own_params = true;
        parts.request_id = Some(mcp.id.to_string().into());
        parts.idempotency.continues = continues;
        parts.trace.traceparent = traceparent;
        if self.wire.host_runs {
            parts.retry = Some(RetryOverride { attempts: Some(1), ..RetryOverride::default() });
        }
        self.watching.attribute(&mut parts, &said);
        if let Some(client) = said.client {
            self.know_client(client);
        }
        parts.turn = said.turn;
        let mut call = ToolCall::from(parts);
        let is_keyed = identity.is_keyed();
        call = self.declared(call, &tool, is_keyed);
        identity.declare(call.identity());
        let effect = DefaultPolicy.effect(&call);
        // A host makes its calls itself.
        let is_guarded = effect == Effect::Mutating && self.mode == Mode::Enforce;
        let is_ours = is_guarded && !self.wire.host_runs;
        let uncut = if is_ours { self.among_equals(&call, &identity) } else { None };
        if let Some(uncut) = &uncut {
            identity.give(uncut.id());
        }
        identity.put_into(&mut call, &self.client, effect);
        let own = call.parts().idempotency.id.map(|id| id.key);
        self.key = own;
        if let Some(own) = own.filter(|_| self.mode == Mode::Enforce) {
            self.wire.lock().in_flight.name(&mcp.id, own);
        }
        let store = self.wire.records.store().filter(|_| effect == Effect::Mutating);
        // Once: a change of the call forgets its digest.
        let digests = (effect == Effect::Mutating).then(|| {
            let exact = identity::digest(&call);
            [exact, identity::likeness(&call, exact)]
        });
        let has_key = call.manifest().is_some_and(|tool| tool.server_key.is_some());
        mcp.checked = if is_guarded { Checked::of(&call).map(Arc::new) } else { None };
        let is_asked_for = has_key || mcp.checked.is_some();
        let is_kept = own.is_some() && (store.is_some() || call.is_identified() || is_asked_for);
        if let Some(digests) = digests.filter(|_| is_kept) {
            let checked = mcp.checked.as_ref().map(|it| it.question.noted()).unwrap_or_default();
            call.parts_mut().idempotency.about =
                Some([&*self.about(&call, digests), &checked].concat().into());
        }
        mcp.trace = Trace {
            record: own.filter(|_| store.is_some() && !call.parts().idempotency.in_process),
            equals: digests.map(|[exact, alike]| {
                let owner = self.client.owner(call.parts().idempotency.continues);
                let key = self.client.equals(&call, alike);
                self.wire.unknowns.equals(key, own, (&owner, self.client.via.credential), exact)
            }),
            is_of_caller: self.client.is_over_http,
            late: call.manifest().and_then(|tool| tool.late).filter(|_| !is_keyed),
            joined: self.client.via.joined.or_else(|| uncut.as_ref()?.joined),
        };
        let mut mcp = Arc::new(mcp);
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
            return Some((mcp, repeatable, refused));
        }
        // A caller that gives it a key of its own declares that it is intended. A host that runs its tools may
        // have been forbidden to make the earlier call.
        let is_harmful = lock(&self.wire.effects).is_harmful(&tool);
        let is_declared = || call.parts().effect_declared || is_harmful;
        let may_bar = !is_keyed && (!self.wire.host_runs || is_declared());
        let barring = mcp.trace.equals.filter(|_| self.mode == Mode::Enforce && may_bar);
        let bars = barring.and_then(|it| Some((it, self.wire.unknowns.bars(&it.key, own)?)));
        // A call of another credential may have its id.
        let named = own.filter(|_| call.is_identified() || self.client.is_over_http);
        let (stack, wire) = (self.stack.clone(), self.wire.clone());
        let is_checked = mcp.checked.is_some();
        let is_in_conversation = self.client.is_in_conversation(&call);
        let recorded = digests.filter(|_| barring.is_some() && store.is_some());
        let recorded = recorded.map(|it| (identity::recorded(&call, it, &self.client), it[1]));
        let in_the_way = self.client.via.in_the_way.filter(|_| self.mode == Mode::Enforce);
        let run = async move {
            // While it runs, equal calls may join it.
            let _uncut = uncut;
            let cut = in_the_way.map(BlockedByEqual::by_cut);
            let mut barred = match (bars.filter(|_| cut.is_none()), &store) {
                (Some((equals, by)), Some(store)) => {
                    wire.unknowns.still(by, &equals, own, store).await
                }
                (bars, _) => Ok(cut.or_else(|| Some(bars?.1))),
            };
            let compares = barring.is_some() && is_in_conversation && matches!(barred, Ok(None));
            let session = identity::session_of_equals(&call).filter(|_| compares);
            if let (Some(store), Some(session), Some((recorded, alike))) =
                (store, session, recorded)
            {
                let learns = |ran| barring.is_some_and(|it| wire.unknowns.tells_of(&it.of(ran)));
                barred =
                    unknown_records::in_store(&store, &call, session, (&recorded, alike), learns)
                        .await;
            }
            let mut again = None;
            let mut end = match barred {
                Ok(Some(barred)) => {
                    let barred = if is_harmful { barred } else { barred.of(&call) };
                    barred.log(call.parts().tool.full_name());
                    again = is_checked.then(|| (call.clone(), stack.clone()));
                    refused(&wire, call, barred.into()).await
                }
                Ok(None) => {
                    let record = match own {
                        Some(own) => identified::before(&wire, own, &mut call).await,
                        None => None,
                    };
                    if is_ours {
                        server_key::put(&mut mcp, &mut call, record.as_ref());
                    }
                    mcp.checked.iter().for_each(|it| wire.unknowns.made.begin(it));
                    again = is_checked.then(|| (call.clone(), stack.clone()));
                    match named {
                        Some(key) => identified::run(&wire, key, (call, record), stack).await,
                        None => stack.oneshot(call).await,
                    }
                }
                Err(why) => refused(&wire, call, why.into()).await,
            };
            server_key::settle(&wire, &mcp, &mut end).await;
            if let Some((call, stack)) = again {
                end = match wire.asked_end(&mcp, end).await {
                    Some(end) => end,
                    None => stack.oneshot(call).await,
                };
            }
            if let Some(counted) = counted {
                counted.end(&end);
            }
            (mcp, repeatable, end)
        };
        self.calls.begin(Box::pin(run))
    }

    /// The client has said its name, as `name/version`, by which its calls have their limit.
    pub(crate) fn know_client(&mut self, name: Box<str>) {
        self.wire.lock().know_client(&name);
        self.watching.know_client(&name);
        self.client_name = Some(name);
    }

    /// The client has left: nothing is asked in its name any more.
    pub(crate) fn client_left(&self) {
        self.wire.lock().client_left = true;
    }

    /// What a person who settles the call reads of it.
    fn about(&self, call: &ToolCall, [exact, alike]: [Digest; 2]) -> Box<str> {
        let mut lines = format!("server: {}\nguard: process {}", self.server, process::id());
        if let Some(client) = &self.client_name {
            let _ = write!(lines, "\nclient: {}", printable(client));
        }
        // The record of a call with a credential has another digest, too.
        if alike != exact || call.parts().idempotency.id.is_some_and(|id| id.digest != exact) {
            let _ = write!(lines, "\n{ALIKE}: {}", unknown_records::noted(alike));
        }
        if call.is_identified() {
            let _ = write!(lines, "\n{PARAMS}: {}", noted(call));
        }
        let shown = call.manifest().map_or(&[][..], |tool| &tool.shown_in_records);
        for pointer in shown {
            let params: Value = serde_json::from_str(call.parts().params.get()).unwrap_or_default();
            if let Some(value) = params.pointer(&pointer.to_string()) {
                let value: String = value.to_string().chars().take(SHOWN).collect();
                let _ = write!(lines, "\n{pointer}: {}", printable(&value));
            }
        }
        lines.into()
    }

    /// The call with what is known of its tool. A key is its caller's promise that it must not be made twice, whatever
    /// the server says of the tool.
    fn declared(&self, mut call: ToolCall, tool: &str, is_keyed: bool) -> ToolCall {
        let effects = lock(&self.wire.effects);
        let known = effects.of(tool);
        let undeclared = effects.undeclared(tool);
        drop(effects);
        let by_server = known.as_ref().and_then(|known| known.by_server);
        if let Some(known) = known {
            call = call.manifested(known.manifest);
        }
        let parts = call.parts_mut();
        (parts.effect, parts.effect_declared) = match by_server {
            Some(_) if is_keyed => (Effect::Mutating, false),
            Some(effect) => (effect, true),
            None if parts.effect_declared => (parts.effect, true),
            None => (undeclared.unwrap_or(parts.effect), false),
        };
        call
    }

    /// The place of a call without an id among equal ones of its connection. Over HTTP, its door has found it.
    fn among_equals(&self, call: &ToolCall, identity: &Identity) -> Option<Uncut> {
        if identity.is_named() || self.client.is_over_http || self.wire.derived {
            return None;
        }
        let parts = call.parts();
        let joins_after = self.equal_calls.joins_after(&parts.params)?;
        let connection = &*self.client.connection;
        let (digest, continues) = (identity::digest(call), parts.idempotency.continues);
        let (tool, conversation) = (parts.tool.name(), identity.conversation.as_deref());
        let equals = equals(connection, conversation, tool, digest, continues);
        let call = Call {
            equals,
            owner: connection.into(),
            place: connection.into(),
            credential: None,
            others: Vec::new(),
            since: None,
            weak_id: None,
            joins_after: Some(joins_after),
        };
        Some(self.equal_calls.begin_now(call, own_id()))
    }
}

/// Refuses a call without the stack, so that spans, metrics and log have it all the same.
fn refused(wire: &ServerLink, call: ToolCall, why: BoxError) -> BoxFuture<'static, End> {
    let Some(refusals) = &wire.refusals else { return Box::pin(ready(Err(why))) };
    let mut why = Some(why);
    let refusal = service_fn(move |_: ToolCall| ready(Err(why.take().expect("one call"))));
    Box::pin(refusals.layer(refusal).oneshot(call))
}
