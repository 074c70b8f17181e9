//! Servers on pipes behind clients over Streamable HTTP: a child for each session, and one for all requests of the
//! protocol without sessions.
mod answered;
mod kept;
mod modern;
mod replay;
mod session;
mod sessions;

pub(crate) use self::sessions::Limits;

use self::{
    answered::{Asked, NoResult, answered, failed, full, not_allowed, not_started},
    replay::EventId,
    session::{Session, owner},
    sessions::Sessions,
};
use super::{
    connection::{Connection, Sharing},
    process::Server,
};
use crate::{
    engine::{
        failure::Failure,
        guard::Guard,
        presence::{Presence, Watched},
        server_event::{Backend, EventStream, Posted, ServerEvent, refused},
    },
    front::{access::text, body::Answered, events::are_taken, log_limit::LogLimit},
    wire::{
        http_names::{LAST_EVENT, SESSION, is_modern},
        jsonrpc::{self, Line},
    },
};
use bytes::Bytes;
use futures_util::future::join_all;
use hyper::{HeaderMap, Method, Request, StatusCode, header::HeaderValue, http::request::Parts};
use std::{
    ffi::OsString,
    io,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tool_reliability::telemetry::TARGET;
use tr_core::internal::lock;

/// The path of the endpoint.
const PATH: &str = "/mcp";
/// How often sessions that are over are removed.
const SWEEP: Duration = Duration::from_secs(30);
/// How long all children together may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// The servers that run one command.
pub(crate) struct HttpToCommand {
    guard: Arc<Guard>,
    command: Vec<OsString>,
    sessions: Mutex<Sessions<Arc<Session>>>,
    shared: Mutex<Shared>,
    /// The log of sessions that did not begin.
    limit: LogLimit,
}

/// The child of requests without a session.
#[derive(Default)]
struct Shared {
    child: Option<Connection>,
    /// It speaks older versions only.
    is_legacy: bool,
    /// It has answered a discovery.
    is_modern: bool,
    /// Who sent the last request, if that is known.
    caller: Option<[u8; 32]>,
}

impl HttpToCommand {
    /// Runs `command` for all clients.
    pub(crate) fn new(guard: Arc<Guard>, command: Vec<OsString>, limits: Limits) -> Arc<Self> {
        let (sessions, shared) = (Mutex::new(Sessions::new(limits)), Mutex::default());
        let limit = LogLimit::default();
        let children = Arc::new(Self { guard, command, sessions, shared, limit });
        tokio::spawn(sweep(Arc::downgrade(&children)));
        children
    }

    /// Ends all servers.
    pub(crate) async fn end(&self) {
        let shared = lock(&self.shared).child.take();
        let sessions = lock(&self.sessions).take_all();
        let all: Vec<_> =
            sessions.iter().map(|session| session.connection.clone()).chain(shared).collect();
        all.iter().for_each(Connection::end);
        let _ = timeout(GRACE, join_all(all.iter().map(Connection::ended))).await;
    }

    fn start(&self, sharing: Sharing) -> io::Result<Connection> {
        let name = self.command.first().map(|it| it.to_string_lossy().into());
        let server = Server::start(&self.command)?;
        Connection::over(server, name.unwrap_or_default(), sharing, self.guard.max_line)
    }

    /// The session that these headers name, which now `calls` a tool or not.
    fn session(
        &self,
        headers: &HeaderMap,
        id: &str,
        calls: bool,
    ) -> Result<Arc<Session>, Box<Answered>> {
        let Some(name) = text(headers, &SESSION) else {
            const WHY: &str = "Bad Request: no valid session: send initialize first, and its Mcp-Session-Id with all that follows";
            return Err(Box::new(refused(StatusCode::BAD_REQUEST, id, -32000, WHY)));
        };
        let mut sessions = lock(&self.sessions);
        let owner = owner(headers);
        let session = sessions.get(name, &owner, Instant::now().into_std(), calls).cloned();
        if let Some(session) = session {
            if !session.connection.is_gone() {
                return Ok(session);
            }
            sessions.remove(name, &owner);
        }
        const WHY: &str = "Session not found: it has ended, or is another client's; send initialize to begin another. Nothing was done";
        Err(Box::new(refused(StatusCode::NOT_FOUND, id, -32001, WHY)))
    }

    async fn posted(&self, head: &Parts, body: Bytes) -> Result<Answered, Box<Answered>> {
        let asked = Asked::of(&body)?;
        // No older version has this method, whatever version the client names.
        if is_modern(&head.headers) || asked.method.as_deref() == Some("server/discover") {
            return Ok(self.modern(&head.headers, body, &asked).await);
        }
        if asked.method.as_deref() == Some("initialize") && !head.headers.contains_key(SESSION) {
            return Ok(self.begin(head, body, &asked).await);
        }
        let calls = asked.method.as_deref() == Some("tools/call");
        let session = self.session(&head.headers, &asked.id, calls)?;
        if asked.requests > 0 && session.is_full() {
            return Ok(full_session(&asked.id));
        }
        let is_primed = asked.requests > 0 && session::is_resumable(&head.headers);
        let client = Watched::default();
        let post = session.connection.post(body, false, Some(&client.presence));
        let answer = answered(post, &self.guard, &asked, is_primed).await;
        Ok(session.kept(&head.headers, answer, &client))
    }

    /// Begins a session.
    async fn begin(&self, head: &Parts, body: Bytes, asked: &Asked) -> Answered {
        let owner = owner(&head.headers);
        if let Err(wait) = self.make_room(&owner) {
            const WHY: &str = "as many sessions are open as there may be, and none may end yet";
            return full(&asked.id, WHY, wait);
        }
        let mut random = [0; 16];
        let filled = getrandom::fill(&mut random).map_err(io::Error::other);
        let connection = match filled.and_then(|()| self.start(Sharing::Session)) {
            Ok(connection) => connection,
            Err(error) => return not_started(&asked.id, &error),
        };
        let session = Arc::new(Session::new(connection.clone()));
        let name = lock(&self.sessions).add(random, owner, Instant::now().into_std(), session);
        let mut unbegun = NewSession { inside: self, name, owner, is_begun: false };
        let mut answer =
            answered(connection.post(body, false, None), &self.guard, asked, false).await;
        // A server that refuses the session has none.
        if answer.status() == StatusCode::OK
            && answer.extensions().get::<NoResult>().is_none()
            && let Ok(name) = HeaderValue::from_str(&unbegun.name)
        {
            answer.headers_mut().insert(SESSION, name);
            unbegun.is_begun = true;
        }
        answer
    }

    /// Opens the stream of what the server says unasked, or resumes a stream.
    fn listen(&self, head: &Parts) -> Result<Answered, Box<Answered>> {
        if !are_taken(&head.headers) {
            const WHY: &str = "Not Acceptable: a GET gets text/event-stream";
            return Ok(refused(StatusCode::NOT_ACCEPTABLE, "null", -32000, WHY));
        }
        if is_modern(&head.headers) {
            return Ok(not_allowed());
        }
        let session = self.session(&head.headers, "null", false)?;
        let last = head.headers.get(LAST_EVENT).map(|last| last.to_str().unwrap_or_default());
        let Some(last) = last else {
            return Ok(session.listen(None, &self.guard, &head.headers));
        };
        let resume = |last| session.resume(last, &self.guard, &head.headers);
        Ok(EventId::read(last).and_then(resume).unwrap_or_else(|| {
            const WHY: &str = "the events after this Last-Event-ID are not kept any more";
            refused(StatusCode::BAD_REQUEST, "null", -32600, WHY)
        }))
    }

    fn delete(&self, head: &Parts) -> Result<Answered, Box<Answered>> {
        let session = self.session(&head.headers, "null", false)?;
        if let Some(name) = text(&head.headers, &SESSION) {
            lock(&self.sessions).remove(name, &owner(&head.headers));
        }
        session.connection.end();
        Ok(answered::empty(StatusCode::OK))
    }

    /// Ends a session for one of this owner's, if there is no place.
    ///
    /// # Errors
    /// How long it is until there can be room.
    fn make_room(&self, owner: &[u8; 32]) -> Result<(), Duration> {
        let room = || {
            let now = Instant::now().into_std();
            lock(&self.sessions).make_room(owner, now, |session| session.connection.is_busy())
        };
        let made = room().or_else(|_| {
            self.expire();
            room()
        });
        let ended = made.inspect_err(|wait| {
            if let Some(left_out) = self.limit.now() {
                let wait_s = wait.as_secs();
                tracing::warn!(target: TARGET, event = "mcp_sessions_full", wait_s, left_out);
            }
        })?;
        if let Some(ended) = ended {
            let why = if ended.has_called { "idle for longest" } else { "called no tool" };
            let idle_s = Instant::from_std(ended.last_used).elapsed().as_secs();
            tracing::warn!(target: TARGET, event = "mcp_session_ended", why, idle_s);
            ended.value.connection.end();
        }
        Ok(())
    }

    /// Removes the sessions that are over.
    fn expire(&self) {
        let is_over = |session: &Arc<Session>| session.connection.is_gone();
        let is_used = |session: &Arc<Session>| session.connection.is_in_use();
        let over = lock(&self.sessions).expire(Instant::now().into_std(), is_over, is_used);
        for session in over {
            if !session.connection.is_gone() {
                tracing::warn!(target: TARGET, event = "mcp_session_idle");
            }
            session.connection.end();
        }
        lock(&self.sessions).values().for_each(|session| session.trim());
    }
}

fn full_session(id: &str) -> Answered {
    full(id, "64 requests of this session are open", Duration::ZERO)
}

/// A session whose client does not know it yet.
struct NewSession<'i> {
    inside: &'i HttpToCommand,
    name: Box<str>,
    owner: [u8; 32],
    is_begun: bool,
}

impl Drop for NewSession<'_> {
    fn drop(&mut self) {
        if !self.is_begun
            && let Some(session) = lock(&self.inside.sessions).remove(&self.name, &self.owner)
        {
            session.connection.end();
        }
    }
}

impl Backend for Arc<HttpToCommand> {
    const IS_COMMAND: bool = true;

    fn path(&self) -> &str {
        PATH
    }

    fn admit(&self, head: &Parts) -> Result<(), Box<Answered>> {
        let headers = &head.headers;
        if !is_modern(headers) && self.session(headers, "null", false)?.is_full() {
            return Err(Box::new(full_session("null")));
        }
        Ok(())
    }

    fn post(&self, posted: Posted, presence: Option<&Presence>) -> EventStream {
        let Posted { headers, body, attempt } = posted;
        let is_modern = is_modern(&headers);
        let is_mutating = attempt.as_ref().is_some_and(|it| it.outlives_stream(is_modern));
        if is_modern {
            return match self.child(&headers) {
                Ok(child) => session::hearing(child.post(body, is_mutating, presence), false),
                Err(error) => EventStream::only(ServerEvent::Failed(failed(&error))),
            };
        }
        let asks = attempt.is_some()
            || matches!(jsonrpc::read(&body), Line::One(message) if message.id.is_some());
        match self.session(&headers, "null", attempt.is_some()) {
            Ok(session) => {
                let is_primed = asks && session::is_resumable(&headers);
                session::hearing(session.connection.post(body, is_mutating, presence), is_primed)
            }
            // It ended since the call was admitted.
            Err(_) => EventStream::only(ServerEvent::Failed(Failure::SERVER_GONE_BEFORE)),
        }
    }

    async fn other(&self, request: Request<Bytes>) -> Answered {
        let (head, body) = request.into_parts();
        if head.uri.path() != PATH {
            const WHY: &str = "a server that runs as a command has no such page";
            return refused(StatusCode::NOT_FOUND, "null", -32600, WHY);
        }
        let answer = match head.method {
            Method::POST => self.posted(&head, body).await,
            Method::GET => self.listen(&head),
            Method::DELETE => self.delete(&head),
            _ => Ok(not_allowed()),
        };
        answer.unwrap_or_else(|refused| *refused)
    }

    fn kept(&self, headers: &HeaderMap, answer: Answered, call: &Watched) -> Answered {
        if is_modern(headers) {
            return answer;
        }
        match self.session(headers, "null", false) {
            Ok(session) => session.kept(headers, answer, call),
            Err(_) => answer,
        }
    }
}

/// Removes sessions that are over, as long as there are children.
async fn sweep(inside: Weak<HttpToCommand>) {
    loop {
        sleep(SWEEP).await;
        let Some(inside) = inside.upgrade() else { return };
        inside.expire();
    }
}
