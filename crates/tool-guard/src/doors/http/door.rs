//! What a client's request is, and who answers it.
use super::{
    exchange::CallExchange,
    headers,
    reply::Reply,
    running::{Place, Running},
    sessions::Sessions,
};
use crate::{
    engine::{
        answer,
        equal_calls::{Begun, Call, equals, own_id},
        guard::Guard,
        identity::Via,
        options::Mode,
        presence::Watched,
        request::Request as CallRequest,
        server_event::{Backend, refused},
    },
    front::{
        access::{Access, Refusal, check_json, check_metadata},
        body::{Answered, read, respond},
        listener,
    },
    wire::{
        batch,
        http_names::{KEY, LAST_EVENT, METHOD, NAME, SESSION, VERSION, is_modern},
        jsonrpc::{
            self, INVALID_REQUEST, Line, MISMATCH, Message, NOT_FORWARDED, PARSE_ERROR, Token,
        },
        lines::Item,
        params::{self, Params},
    },
};
use bytes::Bytes;
use hyper::{
    Method, Request, StatusCode, body::Incoming, header::HeaderName, http::request::Parts,
};
use std::{borrow::Cow, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, oneshot},
    time::Instant,
};
use tr_core::{
    canonical::{Digest, Rules},
    internal::lock,
};

/// The calls and lists that run at once, also without their clients; beyond it they are refused.
const MOST: usize = 1_024;

/// How long a stream is not resumed while its call goes on here: servers refuse what they still send.
const RESUMED: Duration = Duration::from_secs(60);

/// Headers that may occur once, besides the listener's own.
static ONCE: [HeaderName; 6] = [VERSION, METHOD, NAME, SESSION, KEY, LAST_EVENT];

/// The listener's door to the guard.
pub(crate) struct HttpDoor<B> {
    guard: Arc<Guard>,
    behind: B,
    access: Access,
    running: Running,
    sessions: Sessions,
    places: Arc<Semaphore>,
}

impl<B: Backend> listener::Door for Arc<HttpDoor<B>> {
    fn access(&self) -> Option<&Access> {
        Some(&self.access)
    }

    async fn answer(&self, request: Request<Incoming>) -> Answered {
        let (head, body) = request.into_parts();
        let body = match self.read(&head, body).await {
            Ok(body) => body,
            Err((status, why)) => return refused(status, "null", INVALID_REQUEST, &why),
        };
        let is_message = head.method == Method::POST && head.uri.path() == self.behind.path();
        if is_message && self.guard.mode != Mode::Off {
            self.message(head, body).await
        } else {
            if !B::IS_COMMAND && head.headers.contains_key(LAST_EVENT) {
                self.running.settled(&home(&self.via(&head)), RESUMED).await;
            }
            self.behind.other(Request::from_parts(head, body)).await
        }
    }
}

impl<B: Backend> HttpDoor<B> {
    pub(crate) fn new(guard: Arc<Guard>, behind: B, mut access: Access) -> Arc<Self> {
        access.once = &ONCE;
        let (running, sessions) = (Running::default(), Sessions::default());
        let places = Arc::new(Semaphore::new(MOST));
        Arc::new(Self { guard, behind, access, running, sessions, places })
    }

    /// The body of a request that may be answered.
    ///
    /// # Errors
    /// If it may not: a status, and why.
    async fn read(
        &self,
        head: &Parts,
        body: Incoming,
    ) -> Result<Bytes, (StatusCode, Cow<'static, str>)> {
        let said = |(status, why): Refusal| (status, why.into());
        self.access.admit(head, "mcp_refused").map_err(said)?;
        // Two of them could mean two things.
        let twice = head.headers.keys().find(|name| {
            name.as_str().starts_with("mcp-") && head.headers.get_all(*name).iter().nth(1).is_some()
        });
        if let Some(name) = twice {
            let why = format!("the header {name} occurs twice");
            return Err((StatusCode::BAD_REQUEST, why.into()));
        }
        let (path, endpoint) = (head.uri.path(), self.behind.path());
        if path != endpoint && !path.starts_with("/.well-known/") {
            return Err((StatusCode::NOT_FOUND, format!("the endpoint is {endpoint}").into()));
        }
        if path != endpoint {
            check_metadata(head).map_err(said)?;
        }
        if head.method == Method::POST {
            check_json(head).map_err(said)?;
        }
        read(body, self.guard.max_line).await.map_err(said)
    }

    async fn message(&self, head: Parts, body: Bytes) -> Answered {
        let read = match jsonrpc::read(&body) {
            Line::One(message) => message,
            Line::Batch => return self.batch(head, body).await,
            Line::Unreadable { may_call_tool: true } if self.guard.mode == Mode::Enforce => {
                const WHY: &str = "the body is not valid JSON (syntax error, invalid UTF-8 or a duplicate member name) and could be a tool call, so it was not forwarded";
                return refused(StatusCode::BAD_REQUEST, "null", PARSE_ERROR, WHY);
            }
            Line::Unreadable { .. } => {
                return self.behind.other(Request::from_parts(head, body)).await;
            }
        };
        let id_text = read.id.map_or("null", |id| id.get());
        if let Some(header) = headers::mismatch(&head.headers, &read) {
            let why = format!("the header {header} does not say what the body says");
            return refused(StatusCode::BAD_REQUEST, id_text, MISMATCH, &why);
        }
        if B::IS_COMMAND && is_modern(&head.headers) {
            let effects = lock(&self.guard.effects);
            if let Some((code, why)) = headers::fault(&head.headers, &read, &effects.mirrored) {
                return refused(StatusCode::BAD_REQUEST, id_text, code, &why);
            }
        }
        let via = self.via(&head);
        let home = home(&via);
        let id = read.token();
        match (read.method.as_deref(), id) {
            (Some("tools/call" | "tools/list"), Some(id)) => {
                if let Err(refusal) = self.behind.admit(&head) {
                    return *refusal;
                }
                let of = (via, home, id, id_text.into());
                self.exchange(head, body.clone(), &read, of).await
            }
            (Some("tools/call"), None) => {
                const WHY: &str = "the call was not made: the id of tools/call must be a string or an unambiguous number";
                refused(StatusCode::BAD_REQUEST, "null", INVALID_REQUEST, WHY)
            }
            (Some("notifications/cancelled"), None) if self.cancelled(&via, &read, &body) => {
                respond(StatusCode::ACCEPTED, Bytes::new())
            }
            (Some("initialize"), _) => {
                let (begun, client) = (Instant::now(), params::initializes(&read));
                client.iter().for_each(|client| self.guard.watching.know_client(client));
                let answer = self.behind.other(Request::from_parts(head, body.clone())).await;
                let begins = Via::at(&self.guard.server, None, answer.headers());
                if let Some(session) = begins.session {
                    self.sessions.begin(session, begun, client, &via);
                }
                answer
            }
            _ => self.behind.other(Request::from_parts(head, body.clone())).await,
        }
    }

    /// Whose request it is.
    fn via(&self, head: &Parts) -> Via {
        let via = Via::of(&self.guard.server, head);
        let works = || self.access.token.is_some() || self.behind.has_answered(head);
        if B::IS_COMMAND { via } else { self.sessions.of(via, works) }
    }

    /// Hands a cancellation to the call of the same session or connection that it cancels; `false` if it may pass. One
    /// that could cancel another client's call at the server ends here.
    fn cancelled(&self, via: &Via, message: &Message<'_>, body: &Bytes) -> bool {
        let id = Params::of(message).request_id.and_then(Token::read);
        id.is_some_and(|id| {
            self.running.cancel(&home(via), &id, body) || self.running.has(via.session(), &id)
        })
    }

    async fn batch(&self, head: Parts, body: Bytes) -> Answered {
        const WHY: &str = "tools/call, and its cancellation, in a batch cannot be guarded, and nothing of the batch was done: send each message by itself";
        let asks = batch::asks(&body, usize::MAX, |_| false);
        let cancels = || {
            let mut ids = batch::parts(&body).filter_map(|part| params::cancelled(&part));
            ids.any(|id| self.running.has(None, &id))
        };
        if self.guard.mode == Mode::Enforce && (asks.is_none() || cancels()) {
            let refusals = answer::refusals(&batch::asked(&body), INVALID_REQUEST, WHY);
            return respond(StatusCode::BAD_REQUEST, refusals.unwrap_or_default());
        }
        self.behind.other(Request::from_parts(head, body)).await
    }

    async fn exchange(
        &self,
        head: Parts,
        body: Bytes,
        message: &Message<'_>,
        (mut via, home, id, id_text): (Via, Place, Token, Box<str>),
    ) -> Answered {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            const WHY: &str =
                "too many calls run at once: this one was not made; send it again later";
            return refused(StatusCode::SERVICE_UNAVAILABLE, &id_text, NOT_FORWARDED, WHY);
        };
        let is_call = message.is_tool_call() && self.guard.mode == Mode::Enforce;
        let request = is_call.then(|| {
            let client = self.guard.client(&home.caller).via(via.clone());
            CallRequest::read(&body, message, &client).ok()
        });
        let (mut request, mut unnamed) = (request.flatten(), None);
        if let Some(request) = &mut request
            && let Some(call) = self.unnamed(request, &via)
        {
            let own = match via.session() {
                // The same request, sent once more.
                Some(session) => {
                    let digest = Digest::of_bytes(&body);
                    let own = Digest::of_bytes(format!("{session} {id_text} {digest}"));
                    own.to_string().into()
                }
                None => own_id(),
            };
            match self.guard.equal_calls.begin(call, own).await {
                Begun::As(call) => {
                    via.joined = call.joined;
                    request.identity.give(call.id());
                    unnamed = Some(call);
                }
                Begun::Refused(end) => via.in_the_way = Some(end),
            }
        }
        let session = via.session().map(Box::from);
        let client = self.guard.client(&home.caller).via(via);
        let mut proxy = self.guard.proxy(client).with_messages();
        if let Some(client) = session.and_then(|session| self.sessions.client(&session)) {
            proxy.know_client(client);
        }
        match request.map(|request| proxy.begin(request)) {
            Some(Ok(finished)) => proxy.on_step(finished),
            // It is no call, or refused.
            _ => proxy.on_client(&Item::Line(body)),
        }
        let (response, answer) = oneshot::channel();
        let (behind, headers) = (self.behind.at(&head.uri), head.headers);
        let (reply, watched) = (Reply::new(response), Watched::new(unnamed));
        let run = self.running.begin(&home, &id);
        let exchange =
            CallExchange::new(proxy, behind, headers.clone(), id, reply, watched.clone());
        let longest = self.guard.limits.hard;
        // It is large, and a task moves its future several times.
        tokio::spawn(Box::pin(async move {
            exchange.run(run, longest).await;
            drop(place);
        }));
        let answer = answer.await.unwrap_or_else(|_| respond(StatusCode::ACCEPTED, Bytes::new()));
        self.behind.kept(&headers, answer, &watched)
    }

    /// A call that may change something and has no strong id, as equal ones see it.
    fn unnamed(&self, request: &CallRequest, via: &Via) -> Option<Call> {
        let (tool, identity) = (&*request.call.tool, &request.identity);
        let arguments = request.arguments.get();
        let known = lock(&self.guard.effects).of(tool);
        let is_named = identity.is_strong()
            || known.as_ref().is_some_and(|known| known.manifest.identity_of(arguments).is_some());
        if is_named || self.guard.derives_keys || !self.guard.may_change(tool) {
            return None;
        }
        // What belongs to one request does not count, nor does the server's key.
        let usual = Rules::default();
        let rules = known.as_ref().map_or(&usual, |known| &known.manifest.rules);
        let canonical = Digest::of_params(arguments, rules);
        let arguments = canonical.unwrap_or_else(|_| Digest::of_bytes(arguments));
        let conversation = identity.conversation.as_deref();
        // It may be long.
        let weak_id = identity.weak_id().map(|id| Digest::of_bytes(id).to_string().into());
        // Without a session it is not known that it is the same client.
        let joins = via.session().is_some() && weak_id.is_none();
        Some(Call {
            equals: equals(via.caller(), conversation, tool, arguments, request.continues),
            owner: via.owner().into(),
            place: via.place().into(),
            credential: via.credential,
            others: via.others.clone(),
            since: via.credential.and_then(|_| self.sessions.began(via.session()?)),
            weak_id,
            joins_after: self.guard.equal_calls.joins_after(&request.arguments).filter(|_| joins),
        })
    }
}

fn home(via: &Via) -> Place {
    Place { caller: via.canceller().into(), place: via.place().into() }
}

#[cfg(test)]
mod tests;
