//! One message of a client's that the guard looks into: its way to the server, and the answer's way back.
use super::{
    reply::{ClientEvent, Reply},
    running::{Counted, Run},
};
use crate::{
    engine::{
        answer,
        failure::Failure,
        options::Mode,
        out::{Outgoing, Sent},
        presence::Watched,
        proxy::Proxy,
        server_event::{Backend, EventStream, Posted, ServerEvent, next_of},
    },
    front::events::{are_taken, ended, event, is_event_stream},
    wire::{
        http_names::{KEY, NAME, PARAM, is_modern, remove, status_of},
        jsonrpc::{self, NOT_FORWARDED, Token},
        lines::Item,
        params::cancelled,
        scan::answered,
    },
};
use bytes::Bytes;
use futures_util::future::OptionFuture;
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tr_core::{FailureInfo, Ran, Verdict};

/// How long a client that takes events waits without any.
const QUIET: Duration = Duration::from_secs(15);

/// An exchange.
pub(crate) struct CallExchange<B: Backend> {
    proxy: Proxy,
    behind: B,
    /// The client's headers.
    headers: HeaderMap,
    /// The client's id of its request.
    id: Token,
    is_modern: bool,
    reply: Reply,
    open: Vec<Open>,
    /// The head of the response that the server is giving.
    head: Option<(StatusCode, HeaderMap)>,
    /// The server's refusal of the request, for the client.
    refusal: Option<Box<Response<Bytes>>>,
    /// The last message of the server's.
    last: Option<Last>,
    /// Whether the server's own answer is on its way to the client.
    is_answered: bool,
    /// Its client, and until that has the answer, a call without a strong id.
    client: Watched,
}

/// A message of the server's.
struct Last {
    line: Bytes,
    /// The bytes that it came in.
    raw: Bytes,
    /// Whether it answers what was posted.
    answers: bool,
    /// Whether that was posted under the id of the client's request.
    is_of_client: bool,
}

/// A message that was posted.
struct Open {
    id: Token,
    attempt: Option<Sent>,
    /// Whether it cancels a request: what the server says of it is not for the client.
    is_note: bool,
    /// Whether it is a call of the guard's own: nothing of its response is for the client.
    is_ours: bool,
    hearing: EventStream,
}

impl<B: Backend> CallExchange<B> {
    pub(crate) fn new(
        proxy: Proxy,
        behind: B,
        headers: HeaderMap,
        id: Token,
        reply: Reply,
        client: Watched,
    ) -> Self {
        Self {
            proxy,
            behind,
            is_modern: is_modern(&headers),
            headers,
            id,
            reply,
            open: Vec::new(),
            head: None,
            refusal: None,
            last: None,
            is_answered: false,
            client,
        }
    }

    /// Carries the message, and the answer. It ends when nothing more can be learnt: a call that was given up
    /// is heard for at most `longest`, since its late answer settles its record.
    pub(crate) async fn run(mut self, mut orders: Run, longest: Duration) {
        let begun = Instant::now();
        let takes_events = are_taken(&self.headers);
        let mut wanted = self.proxy.key.map(|key| orders.wants(key));
        let (mut leaving, mut is_cancelled) = (None, false);
        loop {
            self.flush().await;
            let is_done = self.proxy.calls.is_empty();
            if is_done && self.is_over() {
                // Of what is cancelled, MCP sends no answer.
                self.reply.close();
            }
            if is_done && self.reply.is_over() && self.has_nothing_to_learn() {
                return;
            }
            let has_room = self.reply.has_room();
            let is_quiet = takes_events && self.reply.is_waiting();
            let is_heard = !self.open.is_empty();
            let open = &mut self.open;
            tokio::select! {
                biased;
                finished = self.proxy.calls.step() => {
                    self.proxy.on_step(finished);
                    if is_cancelled {
                        // From here on it bars its equals, and none joins it.
                        drop(self.client.take());
                    }
                }
                (at, heard) = next_of(open, |open| &mut open.hearing), if has_room => self.on_heard(at, heard).await,
                Some(order) = orders.cancelled() => {
                    if wanted.as_mut().is_some_and(Counted::give_up_to_others) {
                        self.reply.close();
                        leaving = Some(order);
                    } else {
                        is_cancelled = true;
                        self.proxy.on_client(&Item::Line(order));
                    }
                }
                _ = OptionFuture::from(wanted.as_ref().map(Counted::none)), if leaving.is_some() => {
                    if let Some(order) = leaving.take() {
                        self.proxy.on_client(&Item::Line(order));
                    }
                }
                () = self.proxy.sweeper.round() => {}
                news = self.reply.news() => match news {
                    ClientEvent::Room => {}
                    ClientEvent::Received => {
                        if let Some(call) = self.client.take() {
                            call.received();
                        }
                    }
                    ClientEvent::Left => {
                        orders.left();
                        leaving = self.on_cut();
                        if let Some(wanted) = wanted.as_mut().filter(|_| self.is_modern) {
                            wanted.give_up();
                        }
                    }
                },
                () = sleep_until(begun + QUIET), if is_quiet => self.reply.stream(StatusCode::OK, None),
                () = sleep_until(begun + longest), if is_done && is_heard => {
                    self.open.clear();
                    self.reply.close();
                }
            }
        }
    }

    /// Whether the server has nothing more to say: it has answered, or only a list was asked for.
    fn has_nothing_to_learn(&self) -> bool {
        let is_list = |open: &Open| open.attempt.is_none() && !open.is_note;
        self.is_answered || self.open.iter().all(is_list)
    }

    /// Whether nothing more can come for the client: its call was cancelled, or has ended.
    fn is_over(&self) -> bool {
        self.open.iter().all(|open| open.attempt.is_some() || open.is_note)
    }

    /// Sends what the proxy has for both sides.
    async fn flush(&mut self) {
        if let Some(ended) = self.proxy.ended.take() {
            self.client.ended(ended);
        }
        while let Some(outgoing) = self.proxy.to_server.next() {
            self.send(outgoing);
        }
        while let Some(Outgoing { line, .. }) = self.proxy.to_client.next() {
            self.answer(line).await;
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        let Outgoing { line, attempt } = outgoing;
        let mut id = attempt.as_ref().map(|attempt| attempt.id.clone());
        let mut is_note = false;
        if attempt.is_none()
            && let Some(cancelled) = cancelled(&line)
        {
            let is_unsent = |open: &Open| {
                open.id == cancelled && open.attempt.is_some() && !open.hearing.is_sent()
            };
            if let Some(at) = self.open.iter().position(is_unsent) {
                // Of a call that waits for its preflight the server need not hear.
                drop(self.open.remove(at));
                return self.proxy.on_failed(&cancelled, Failure::CANCELLED_BEFORE);
            }
            let is_modern = self.is_modern;
            let stays =
                |open: &Open| open.attempt.as_ref().is_some_and(|it| it.outlives_stream(is_modern));
            self.open.retain(|open| open.id != cancelled || stays(open));
            if is_modern {
                // There it is the end of the stream that cancels.
                return;
            }
            (id, is_note) = (Some(cancelled), true);
        }
        let asks = attempt.as_ref().and_then(|attempt| attempt.asks.as_deref());
        let (is_ours, mut headers) = (asks.is_some(), self.headers.clone());
        if let Some(tool) = asks {
            for_own_call(&mut headers, tool);
        }
        let posted = Posted { headers, body: line, attempt: attempt.clone() };
        let presence = attempt.is_some().then_some(&self.client.presence);
        let hearing = self.behind.post(posted, presence);
        let id = id.unwrap_or_else(|| self.id.clone());
        self.open.push(Open { id, attempt, is_note, is_ours, hearing });
    }

    /// Sends the client a message of the proxy's.
    async fn answer(&mut self, line: Bytes) {
        let is_same = self.last.as_ref().is_some_and(|last| last.line == line);
        let is_known = |last: &Last| last.answers && last.is_of_client && is_same;
        let is_last =
            self.last.as_ref().is_some_and(is_known) || answered(&line).as_ref() == Some(&self.id);
        // The guard's own answer came in nothing of the server's.
        let came_in = self.last.take_if(|last| is_same || is_last && last.answers);
        self.is_answered |= is_last && came_in.as_ref().is_some_and(|last| last.answers);
        // An event is longer than the message in it.
        let (event_raw, body_raw) = match came_in {
            Some(last) if last.raw.len() > last.line.len() => (Some(last.raw), None),
            Some(last) => (None, Some(last.raw).filter(|_| is_same)),
            None => (None, None),
        };
        if is_last
            && !is_same
            && self.reply.is_waiting()
            && let Some(refusal) = self.refusal.take()
        {
            let (head, body) = refusal.into_parts();
            return self.reply.whole(head.status, head.headers, body);
        }
        if !self.reply.is_streaming() && !is_last {
            // The server has more to say before its answer.
            self.reply.stream(StatusCode::OK, None);
        }
        let message = match event_raw {
            Some(raw) if self.reply.is_streaming() && is_same && is_last => ended(raw),
            Some(raw) if self.reply.is_streaming() && is_same => raw,
            raw if self.reply.is_streaming() => event(&line, raw.as_deref()),
            _ => body_raw.unwrap_or(line),
        };
        if !is_last {
            self.reply.event(message).await;
        } else if self.reply.is_streaming() {
            self.reply.end(message).await;
        } else {
            let head = self.head.take();
            let (status, headers) = head.unwrap_or_else(|| head_of(&message, self.is_modern));
            self.reply.whole(status, headers, message);
        }
    }

    async fn on_heard(&mut self, at: usize, heard: Option<ServerEvent>) {
        if self.open[at].is_note {
            if matches!(heard, None | Some(ServerEvent::Refused(_) | ServerEvent::Failed(_))) {
                self.open.remove(at);
            }
            return;
        }
        let is_ours = self.open[at].is_ours;
        match heard {
            Some(ServerEvent::Head(..) | ServerEvent::Between(_)) if is_ours => {}
            None => {
                let open = self.open.remove(at);
                // Nothing answers it any more: it has ended already, if it was answered.
                self.proxy.on_failed(&open.id, Failure::UNANSWERED);
            }
            Some(ServerEvent::Head(status, headers)) => {
                if is_event_stream(&headers) && self.reply.is_waiting() {
                    self.reply.stream(status, Some(headers));
                } else {
                    self.head = Some((status, headers));
                }
            }
            Some(ServerEvent::Message { line, raw, answers }) => {
                if !is_ours {
                    let is_of_client = self.open[at].id == self.id;
                    self.last = Some(Last { line: line.clone(), raw, answers, is_of_client });
                }
                self.proxy.on_server(&Item::Line(line));
            }
            Some(ServerEvent::Between(bytes)) => self.reply.event(bytes).await,
            Some(ServerEvent::Oversized(long)) => self.proxy.on_server(&Item::Oversized(long)),
            Some(ServerEvent::Refused(refusal)) => {
                let open = self.open.remove(at);
                let failure = refused(refusal.status());
                if self.proxy.mode != Mode::Enforce || open.attempt.is_none() {
                    let said = failure.to_string();
                    if self.proxy.mode != Mode::Enforce {
                        self.proxy.on_failed(&open.id, failure);
                    }
                    let (head, body) = refusal.into_parts();
                    return self.fail(head.status, head.headers, body, &said).await;
                }
                if !is_ours {
                    self.refusal = Some(refusal);
                }
                self.proxy.on_failed(&open.id, failure);
            }
            Some(ServerEvent::Failed(failure)) => {
                let (open, said) = (self.open.remove(at), failure.to_string());
                self.proxy.on_failed(&open.id, failure);
                if self.proxy.mode != Mode::Enforce {
                    let body = answer::refusal(&self.id.to_json(), NOT_FORWARDED, &said);
                    self.fail(StatusCode::BAD_GATEWAY, HeaderMap::new(), body, &said).await;
                }
            }
        }
    }

    /// Answers with this response; on a stream that has begun, with an error of the same sense.
    async fn fail(&mut self, status: StatusCode, headers: HeaderMap, body: Bytes, said: &str) {
        if !self.reply.is_streaming() {
            return self.reply.whole(status, headers, body);
        }
        let is_answer = answered(&body) == Some(self.id.clone());
        let line =
            if is_answer { body } else { answer::refusal(&self.id.to_json(), NOT_FORWARDED, said) };
        self.reply.end(event(&line, None)).await;
    }

    /// The client left without the answer. That cancels nothing, except a modern call that only reads or is
    /// declared as cancellable, once no other client waits for it: by this order.
    fn on_cut(&mut self) -> Option<Bytes> {
        self.client.presence.gone();
        self.proxy.client_left();
        if let Some(call) = self.client.take() {
            call.cut();
        }
        let ends = |open: &Open| open.attempt.as_ref().is_some_and(|it| !it.outlives_stream(true));
        (self.is_modern && self.open.iter().any(ends))
            .then(|| jsonrpc::cancellation(self.id.to_json(), "its client left"))
    }
}

/// The head of a response with this answer: modern ones have a status for some JSON-RPC errors.
fn head_of(answer: &[u8], is_modern: bool) -> (StatusCode, HeaderMap) {
    let code = if is_modern { jsonrpc::error_code(answer) } else { None };
    let json = HeaderValue::from_static("application/json");
    (code.map_or(StatusCode::OK, status_of), HeaderMap::from_iter([(CONTENT_TYPE, json)]))
}

/// The headers of the client's call for one of the guard's own.
fn for_own_call(headers: &mut HeaderMap, tool: &str) {
    remove(headers, |name| name.starts_with(PARAM) || name == KEY);
    if let Some(name) = headers.get_mut(NAME) {
        *name = HeaderValue::from_str(tool).unwrap_or_else(|_| HeaderValue::from_static(""));
    }
}

fn refused(status: StatusCode) -> Failure {
    let facts = FailureInfo::new("refused", Ran::No, Verdict::Permanent);
    Failure::said(format!("The server refused the request with {status}"), facts)
}
