//! One posted message, and what is heard after it: the response, and the streams that resume it.
use super::{
    alive::Peer,
    body::{Body, Events, brief, read, skip},
    faults::{About, Fault, Kind, failure, is_alive, is_transient, refused},
    headers::of_stream,
    http::Upstream,
    preflight,
};
use crate::{
    engine::{
        options::Preflight,
        server_event::{Asks, Posted, ServerEvent, answers},
    },
    front::{access::text, events::is_event_stream},
    wire::{
        http_names::{LAST_EVENT, SESSION, is_modern},
        jsonrpc::error_code,
        lines::Oversized,
        sse::{Content, Piece},
    },
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use hyper::{
    HeaderMap, Method, Response, StatusCode, Uri,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    http::response,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// How long a server that cannot be reached, or a stream that was cut, is tried again.
const REACH: Duration = Duration::from_secs(10);
/// How long a gateway that has lost its server is asked again for a session.
const ROUTE: Duration = Duration::from_secs(5);
/// How long a preflight may take.
const BRIEF: Duration = Duration::from_secs(10);
/// The first pause before another attempt; each later one is twice as long.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A posted message.
struct HttpPost {
    server: Arc<Upstream>,
    uri: Uri,
    /// The client's own headers.
    of_client: HeaderMap,
    headers: HeaderMap,
    body: Bytes,
    peer: Peer,
    kind: Kind,
    asks: Asks,
    is_modern: bool,
    /// Whether the first byte may have left.
    is_sent: Arc<AtomicBool>,
    /// The stream of the response, until it ends.
    events: Option<Events>,
    /// What was heard and not returned yet.
    heard: VecDeque<ServerEvent>,
    /// Whether the answer was heard.
    is_answered: bool,
    /// The last event's id, from which the stream can be resumed.
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    /// How many streams ended without a message.
    silent: u32,
}

impl Upstream {
    /// Posts a message, at this address of the server's; `is_sent` becomes true when the first byte may leave. What is
    /// heard ends when nothing more can come; dropping it closes the connection.
    pub(crate) fn events(
        self: &Arc<Self>,
        uri: Option<Uri>,
        posted: Posted,
        is_sent: Arc<AtomicBool>,
    ) -> impl Stream<Item = ServerEvent> + Send + use<> {
        let Posted { headers: of_client, body, attempt } = posted;
        let (server, headers) = (self.clone(), self.take(&of_client));
        let uri = uri.unwrap_or_else(|| self.url().clone());
        let (kind, asks) = match attempt {
            Some(sent) => {
                let kind = if sent.is_mutating { Kind::Mutating } else { Kind::Read };
                (kind, Asks { id: Some(sent.id), ..Asks::default() })
            }
            None => (Kind::Message, Asks::of(&body)),
        };
        let mut post = HttpPost {
            peer: server.alive.peer(uri.query(), &headers),
            uri,
            is_modern: is_modern(&headers),
            server,
            of_client,
            headers,
            body,
            kind,
            asks,
            is_sent,
            events: None,
            heard: VecDeque::new(),
            is_answered: false,
            last_id: None,
            retry: None,
            silent: 0,
        };
        let begun = stream::once(async move {
            post.begin().await;
            post
        });
        begun.flat_map(|post| {
            stream::unfold(post, |mut it| async move { Some((it.next().await?, it)) })
        })
    }
}

impl HttpPost {
    /// What is heard next; `None` if nothing more can come.
    async fn next(&mut self) -> Option<ServerEvent> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Some(heard);
            }
            match self.events.as_mut()?.next().await {
                Ok(Some(piece)) => self.take(piece),
                // What is left of an event that never ended says nothing.
                Ok(None) | Err(_) => self.on_end().await,
            }
        }
    }

    fn failed(&self, fault: &Fault, kind: Kind) -> ServerEvent {
        ServerEvent::Failed(failure(fault, kind, self.server.host()))
    }

    fn fail(&mut self, fault: &Fault) {
        self.heard.push_back(self.failed(fault, self.kind));
    }

    async fn begin(&mut self) {
        if self.kind == Kind::Mutating
            && self.server.preflight == Preflight::On
            && !self.server.alive.is_fresh(&self.peer, Instant::now())
            && let Err(heard) = self.preflight().await
        {
            return self.heard.push_back(heard);
        }
        self.is_sent.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        let mut pause = PAUSE;
        loop {
            let sent = self.server.send(&Method::POST, &self.uri, &self.headers, &self.body).await;
            let may_wait =
                |limit: Duration| self.kind == Kind::Message && begun.elapsed() + pause <= limit;
            match sent {
                Err(Fault::NotConnected(_)) if may_wait(REACH) => {}
                Err(fault) => return self.fail(&fault),
                Ok((head, body)) if head.status.is_success() => {
                    return self.on_success(head, body).await;
                }
                // It is not known of a payment whether it was made before.
                Ok((head, _))
                    if self.kind != Kind::Mutating && self.server.follow(&head, &mut self.uri) =>
                {
                    continue;
                }
                Ok((head, body)) => {
                    let body = brief(body, self.server.max_line, BRIEF).await;
                    let lost_route = self.asks.is_initialize
                        && head.status == StatusCode::NOT_FOUND
                        && !self.headers.contains_key(SESSION)
                        && error_code(&body).is_none();
                    if !(lost_route && may_wait(ROUTE)) {
                        let refusal = self.refusal(head, body, self.kind).await;
                        return self.heard.push_back(refusal);
                    }
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks for a sign of life; returns what the client hears if there is none.
    async fn preflight(&mut self) -> Result<(), ServerEvent> {
        let (headers, body, id) = preflight::probe(&self.headers, &self.body, self.is_modern);
        let asked = async {
            let (head, body) =
                self.server.send_on(&Method::POST, &mut self.uri, &headers, &body).await?;
            // The connection can be used again once the body was read.
            Ok::<_, Fault>((head, brief(body, 64 * 1024, BRIEF / 10).await))
        };
        let late = || Err(Fault::Dropped("no sign of life within 10 s".into()));
        let asked = timeout(BRIEF, asked).await.unwrap_or_else(|_| late());
        let (head, body) = asked.map_err(|fault| self.failed(&fault, Kind::Preflight))?;
        if is_alive(head.status, &body) {
            self.server.alive.note(self.peer, Instant::now());
            return Ok(());
        }
        let mut refusal = self.refusal(head, body, Kind::Preflight).await;
        if let ServerEvent::Refused(response) = &mut refusal {
            // Clients open another session on 404 alone.
            if response.status() == StatusCode::BAD_REQUEST
                && self.headers.contains_key(SESSION)
                && self.server.alive.has_worked(&self.peer)
            {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            let body = response.body_mut();
            *body = preflight::as_of_call(body, &id, &self.body);
        }
        Err(refusal)
    }

    /// What a response of another status than 2xx says.
    async fn refusal(&self, head: response::Parts, body: Bytes, kind: Kind) -> ServerEvent {
        let is_initialize = self.asks.is_initialize;
        let elsewhere = self.server.elsewhere(&self.of_client, is_initialize, &head);
        if let Some(fault) = elsewhere.await {
            return self.failed(&fault, kind);
        }
        let has_session = self.headers.contains_key(SESSION);
        let (is_modern, host) = (self.is_modern, self.server.host());
        let about = About { kind, has_session, is_modern, host };
        match refused(head.status, &head.headers, &body, about, &self.server.status) {
            Some(failure) => ServerEvent::Failed(failure),
            None => ServerEvent::Refused(Box::new(Response::from_parts(head, body))),
        }
    }

    async fn on_success(&mut self, head: response::Parts, body: Incoming) {
        self.server.alive.note(self.peer, Instant::now());
        if is_event_stream(&head.headers) {
            self.heard.push_back(ServerEvent::Head(head.status, head.headers));
            self.events = Some(Events::new(body, self.server.max_line));
            return;
        }
        match read(body, self.server.max_line).await {
            Body::Torn(_, why) => self.fail(&Fault::Dropped(why)),
            Body::Longer(begun, rest) => {
                let skipped = skip(&begun, rest).await;
                let is_answer = self.asks.id.is_none() || self.is_answered_by(&skipped);
                self.heard.push_back(ServerEvent::Head(head.status, head.headers));
                self.heard.push_back(ServerEvent::Oversized(skipped));
                if !is_answer {
                    self.fail(&Fault::NoAnswer(
                        "the body is too long and answers another id".into(),
                    ));
                }
            }
            Body::Whole(raw) => self.on_body(head, raw),
        }
    }

    fn on_body(&mut self, head: response::Parts, raw: Bytes) {
        // `None` if there is nothing to answer.
        let answers = self.asks.id.as_ref().map(|id| answers(&raw, id));
        if answers != Some(false) {
            self.heard.push_back(ServerEvent::Head(head.status, head.headers));
            if !raw.is_empty() {
                self.heard.push_back(ServerEvent::line(raw, answers.is_some()));
            }
        } else if self.kind == Kind::Message && !raw.is_empty() {
            // The client makes of it what it can.
            let response = Response::from_parts(head, raw);
            self.heard.push_back(ServerEvent::Refused(Box::new(response)));
        } else {
            let what = if raw.is_empty() {
                format!("{}, with an empty body", head.status)
            } else {
                let media = text(&head.headers, &CONTENT_TYPE);
                format!("its body, {}, is no answer to this request", media.unwrap_or("of no type"))
            };
            self.fail(&Fault::NoAnswer(what));
        }
    }

    fn is_answered_by(&self, line: &Oversized) -> bool {
        !line.asks && line.token() == self.asks.id
    }

    fn take(&mut self, piece: Piece) {
        if let Some(id) = piece.id {
            // An empty id takes the last one back.
            self.last_id = HeaderValue::from_str(&id).ok().filter(|it| !it.is_empty());
        }
        self.retry = piece.retry.or(self.retry);
        match piece.content {
            Content::Message(line) => {
                self.silent = 0;
                let id = self.asks.id.as_ref();
                let answers = id.is_some_and(|id| answers(&line, id));
                self.is_answered |= answers;
                self.heard.push_back(ServerEvent::Message { line, raw: piece.raw, answers });
            }
            Content::Oversized(line) => {
                self.silent = 0;
                self.is_answered |= self.is_answered_by(&line);
                self.heard.push_back(ServerEvent::Oversized(line));
            }
            Content::None if !piece.raw.is_empty() => {
                self.heard.push_back(ServerEvent::Between(piece.raw));
            }
            Content::None => {}
        }
    }

    /// Handles the end of an event stream.
    async fn on_end(&mut self) {
        self.events = None;
        let may_resume = !self.is_modern && !self.asks.is_subscription;
        if self.is_answered || self.asks.id.is_none() {
            return;
        }
        match self.last_id.clone().filter(|_| may_resume) {
            Some(last_id) => self.resume(last_id).await,
            None => self.fail(&Fault::Cut),
        }
    }

    /// Resumes the stream after the last event.
    async fn resume(&mut self, last_id: HeaderValue) {
        let mut headers = of_stream(&self.headers);
        headers.insert(LAST_EVENT, last_id);
        let cut = Instant::now();
        loop {
            let pause = self
                .retry
                .unwrap_or_else(|| (PAUSE * 2_u32.pow(self.silent.min(5))).min(LONGEST_PAUSE));
            self.silent += 1;
            if cut.elapsed() + pause > REACH {
                return self.fail(&Fault::Cut);
            }
            sleep(pause).await;
            let left = REACH.saturating_sub(cut.elapsed());
            let nothing = Bytes::new();
            let sent = self.server.send(&Method::GET, &self.uri, &headers, &nothing);
            match timeout(left, sent).await {
                Ok(Ok((head, body)))
                    if head.status == StatusCode::OK && is_event_stream(&head.headers) =>
                {
                    self.events = Some(Events::new(body, self.server.max_line));
                    return;
                }
                Ok(Ok((head, _))) if is_transient(head.status) => {}
                Ok(Err(Fault::NotConnected(_) | Fault::Dropped(_))) => {}
                Ok(Ok(_) | Err(_)) | Err(_) => return self.fail(&Fault::Cut),
            }
        }
    }
}
