//! One running server on pipes that many posts share.
mod ids;
mod posts;

pub(crate) use self::posts::Sharing;

use self::posts::{Gone, Message, Posts};
use super::{
    pipes::{PipeEvent, Pipes},
    process::{self, Server},
};
use crate::{
    engine::{
        limits::{BYTES_AT_ONCE, INPUT_GRACE, MAX_WAITING_BYTES},
        presence::Presence,
        server_event::ServerEvent,
    },
    supervise::{NOT_FOUND, NOT_STARTED},
    wire::lines::Lines,
};
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tokio::{
    sync::{Notify, watch},
    task::yield_now,
    time::timeout,
};
use tool_reliability::telemetry::TARGET;
use tr_core::internal::lock;

/// A running server.
#[derive(Clone, Debug)]
pub(crate) struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    posts: Mutex<Posts>,
    /// There is something to write, to read again, or to end.
    wake: Notify,
    ends: watch::Sender<Ends>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ends {
    Runs,
    /// It was asked to end.
    Asked,
    /// Its processes are gone; its exit code, if it ended by itself.
    Over(Option<u8>),
}

impl Connection {
    /// Shares a running server with this name.
    ///
    /// # Errors
    /// If its output cannot be read.
    pub(crate) fn over(
        server: Server,
        name: Box<str>,
        sharing: Sharing,
        max_line: usize,
    ) -> io::Result<Self> {
        let pipes = Pipes::new(server, Lines::new(max_line))?;
        let (ends, _) = watch::channel(Ends::Runs);
        let shared = Shared { posts: Mutex::new(Posts::new(sharing)), wake: Notify::new(), ends };
        let connection = Self(Arc::new(shared));
        let io = Io { shared: connection.0.clone(), pipes, unwritten: BytesMut::new(), name };
        tokio::spawn(io.run());
        Ok(connection)
    }

    /// Posts a message.
    pub(crate) fn post(&self, line: Bytes, is_mutating: bool, presence: Option<&Presence>) -> Post {
        let presence = presence.cloned().unwrap_or_default();
        let message = Message { line, is_mutating, presence };
        let mut posts = lock(&self.0.posts);
        let state = match posts.has_room(None) {
            true => State::Open(posts.post(&message)),
            false => State::Waiting(message),
        };
        drop(posts);
        self.0.wake.notify_one();
        Post { shared: self.0.clone(), state }
    }

    /// From now on the requests may be those of several clients.
    pub(super) fn mix(&self) {
        lock(&self.0.posts).is_mixed = true;
    }

    /// Listens to what the server says unasked.
    pub(crate) fn listen(&self) -> Post {
        let number = lock(&self.0.posts).listen();
        self.0.wake.notify_one();
        Post { shared: self.0.clone(), state: State::Open(number) }
    }

    pub(super) fn is_gone(&self) -> bool {
        *self.0.ends.borrow() != Ends::Runs || lock(&self.0.posts).gone.is_some()
    }

    /// How many requests are waited for by their clients.
    pub(super) fn streams(&self) -> usize {
        lock(&self.0.posts).streams()
    }

    /// Whether a stream is open.
    pub(super) fn is_in_use(&self) -> bool {
        let posts = lock(&self.0.posts);
        posts.listener.is_some() || posts.streams() > 0
    }

    /// Whether it would be missed: a stream is open, or the server owes an answer.
    pub(super) fn is_busy(&self) -> bool {
        self.is_in_use() || lock(&self.0.posts).owes()
    }

    /// Ends the server.
    pub(crate) fn end(&self) {
        self.0.ends.send_modify(|ends| *ends = Ends::Asked.max(*ends));
        self.0.wake.notify_one();
    }

    /// Waits until its processes are gone; returns its exit code, if it ended by itself.
    pub(crate) async fn ended(&self) -> Option<u8> {
        let mut ends = self.0.ends.subscribe();
        let ended = ends.wait_for(|ends| matches!(ends, Ends::Over(_))).await;
        if let Ok(Ends::Over(code)) = ended.as_deref() { *code } else { None }
    }
}

/// What is heard of a message that was posted.
#[derive(Debug)]
pub(crate) struct Post {
    shared: Arc<Shared>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The server reads slowly.
    Waiting(Message),
    Open(u64),
}

impl Stream for Post {
    type Item = ServerEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerEvent>> {
        let this = &mut *self;
        let mut posts = lock(&this.shared.posts);
        let number = match &this.state {
            State::Open(number) => *number,
            State::Waiting(message) => {
                if !posts.has_room(Some(cx.waker())) {
                    return Poll::Pending;
                }
                let number = posts.post(message);
                this.state = State::Open(number);
                this.shared.wake.notify_one();
                number
            }
        };
        let was_full = !posts.may_read();
        let Some(heard) = posts.next(number, cx.waker()) else { return Poll::Pending };
        if was_full && posts.may_read() {
            this.shared.wake.notify_one();
        }
        Poll::Ready(heard)
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        if let State::Open(number) = self.state {
            lock(&self.shared.posts).close(number);
            // There may be a cancellation to write, and room to read.
            self.shared.wake.notify_one();
        }
    }
}

/// Carries lines between the server and the posts.
struct Io {
    shared: Arc<Shared>,
    pipes: Pipes,
    unwritten: BytesMut,
    /// The command, without its arguments.
    name: Box<str>,
}

impl Io {
    async fn run(mut self) {
        self.carry().await;
        if self.pipes.heard {
            // What is left of the server answers nothing, however long it takes to end.
            lock(&self.shared.posts).end(Gone::Ended);
        }
        let (why, code) = self.end().await;
        if matches!(why, Gone::NotStarted(_)) {
            tracing::warn!(target: TARGET, event = "mcp_child_not_started");
        }
        lock(&self.shared.posts).end(why);
        self.shared.ends.send_replace(Ends::Over(code));
    }

    /// Carries lines until the server's end, or until it is asked to end.
    async fn carry(&mut self) {
        let shared = self.shared.clone();
        while *shared.ends.borrow() == Ends::Runs {
            let may_read = {
                let mut posts = lock(&shared.posts);
                if self.unwritten.is_empty() {
                    self.unwritten = std::mem::take(&mut posts.to_server);
                }
                posts.may_read()
            };
            // An idle server has no buffer.
            self.pipes.lines.release();
            let event = tokio::select! {
                biased;
                event = self.pipes.next(&mut self.unwritten, may_read) => event,
                () = shared.wake.notified() => continue,
            };
            match event {
                PipeEvent::Wrote(bytes) => lock(&shared.posts).wrote(bytes),
                PipeEvent::NotWritten => self.unwritten = BytesMut::new(),
                PipeEvent::Read => {
                    self.sort();
                    // Who reads as fast as the server writes, falls behind by no more than that.
                    if lock(&shared.posts).unread >= BYTES_AT_ONCE {
                        yield_now().await;
                    }
                }
                PipeEvent::Ended => return self.sort(),
                PipeEvent::Exited => {}
            }
        }
    }

    /// Gives the posts what was read.
    fn sort(&mut self) {
        let mut posts = lock(&self.shared.posts);
        while let Some(item) = self.pipes.buffered() {
            posts.on_server(item);
        }
    }

    /// Ends the server and what it has started; returns why it answers nothing any more, and its exit code.
    async fn end(&mut self) -> (Gone, Option<u8>) {
        self.pipes.end_output();
        let server = &mut self.pipes.server;
        server.close_input();
        let code = timeout(INPUT_GRACE, process::exit(&mut server.supervisor)).await.ok().flatten();
        server.end().await;
        let why = match code {
            Some(NOT_FOUND) if !self.pipes.heard => "was not found",
            Some(NOT_STARTED) if !self.pipes.heard => "cannot be run",
            _ => return (Gone::Ended, code),
        };
        let name = &self.name;
        let why = format!("the MCP server cannot be started: the command {name} {why}");
        (Gone::NotStarted(why.into()), code)
    }
}

const _: () = assert!(MAX_WAITING_BYTES > BYTES_AT_ONCE);

#[cfg(test)]
mod tests;
