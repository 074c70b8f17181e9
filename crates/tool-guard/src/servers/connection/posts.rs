//! Posts that share a server on pipes, and what each of them hears: no I/O.
mod said;

use super::ids::{Ids, Refused};
use crate::{
    engine::{
        answer, failure::Failure, limits::MAX_WAITING_BYTES, presence::Presence,
        server_event::ServerEvent,
    },
    wire::jsonrpc::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, cancellation},
};
use bytes::{Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use hyper::{Response, StatusCode};
use std::{
    collections::{HashMap, VecDeque},
    mem::take,
    task::Waker,
};
use tr_core::{FailureInfo, Ran, Verdict};

/// Whether the posts are those of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// All are one client's, of a protocol with sessions: the end of a stream cancels nothing.
    #[default]
    Session,
    /// Each may be another client's, of the protocol without sessions: the end of its stream cancels a request,
    /// unless it may change something.
    Clients,
}

/// A message to post.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) line: Bytes,
    /// Whether it is a call that may change something.
    pub(super) is_mutating: bool,
    /// Whether its client is there.
    pub(super) presence: Presence,
}

/// The posts, and what waits for either side.
#[derive(Debug, Default)]
pub(super) struct Posts {
    sharing: Sharing,
    /// Whether the requests may be those of several clients.
    pub(super) is_mixed: bool,
    ids: Ids,
    posts: HashMap<u64, Post>,
    last: u64,
    /// The post that hears what answers no other.
    pub(super) listener: Option<u64>,
    /// The server's messages that no stream was open for.
    kept: VecDeque<Bytes>,
    kept_bytes: usize,
    /// The lines that are still to be written.
    pub(super) to_server: BytesMut,
    /// How many bytes were queued for the server, and written to it, since its start.
    queued: u64,
    written: u64,
    /// How many bytes wait for posts.
    pub(super) unread: usize,
    /// Posts of clients that read too slowly for what was last said.
    slow: Vec<u64>,
    /// Why the server answers nothing any more.
    pub(super) gone: Option<Gone>,
    /// Posts that wait for room.
    waiting: Vec<Waker>,
}

impl Posts {
    pub(super) fn new(sharing: Sharing) -> Self {
        Self { sharing, ..Self::default() }
    }

    /// Whether a message may be posted now; else `waker` is woken when it may.
    pub(super) fn has_room(&mut self, waker: Option<&Waker>) -> bool {
        let has_room = self.gone.is_some() || self.queued - self.written < MAX_WAITING_BYTES as u64;
        if let Some(waker) = waker.filter(|_| !has_room) {
            self.waiting.push(waker.clone());
        }
        has_room
    }

    /// Whether more of the server's output may be read. A client that reads slowly holds up no other client.
    pub(super) fn may_read(&self) -> bool {
        self.sharing == Sharing::Clients || self.unread < MAX_WAITING_BYTES
    }

    /// Posts a message; returns the number of the post.
    pub(super) fn post(&mut self, message: &Message) -> u64 {
        self.last += 1;
        let number = self.last;
        let mut post = Post {
            from: self.queued,
            is_mutating: message.is_mutating,
            presence: message.presence.clone(),
            ..Post::default()
        };
        if let Some(gone) = &self.gone {
            post.heard.push_back(ServerEvent::Failed(gone.failure(true)));
            self.posts.insert(number, post);
            return number;
        }
        let scope = if self.sharing == Sharing::Session { 0 } else { number };
        let mut line = self.ids.rewrite(&message.line, number, scope);
        if line == Err(Refused::TooMany) {
            // Some were asked by posts that are dropped.
            self.ids.keep(|post| self.posts.contains_key(&post));
            line = self.ids.rewrite(&message.line, number, scope);
        }
        match line {
            Ok((line, requests)) => {
                post.open = requests;
                self.queue(&line.unwrap_or_default());
            }
            Err(Refused::TooMany) => {
                let facts = FailureInfo::new("overloaded", Ran::No, Verdict::TRANSIENT);
                let why = "too many requests are open: this one was not forwarded";
                post.heard.push_back(ServerEvent::Failed(Failure::said(why, facts)));
            }
            Err(refused) => post.heard.push_back(ServerEvent::Refused(Box::new(refusal(refused)))),
        }
        self.posts.insert(number, post);
        if self.sharing == Sharing::Session && self.posts[&number].open > 0 {
            self.give_kept(number);
        }
        self.forget_cancelled();
        number
    }

    /// Listens to what answers no post; who listened before hears nothing more.
    pub(super) fn listen(&mut self) -> u64 {
        self.last += 1;
        let mut post = Post { from: self.queued, ..Post::default() };
        if let Some(before) = self.listener.replace(self.last)
            && let Some(before) = self.posts.get_mut(&before)
        {
            // What it did not take is for the next one.
            (post.heard, post.bytes) = (take(&mut before.heard), take(&mut before.bytes));
            before.waker.wake();
        }
        self.posts.insert(self.last, post);
        self.give_kept(self.last);
        self.last
    }

    /// What a post hears next: `None` if nothing yet, `Some(None)` if nothing any more.
    pub(super) fn next(&mut self, number: u64, waker: &Waker) -> Option<Option<ServerEvent>> {
        let Some(post) = self.posts.get_mut(&number) else { return Some(None) };
        if let Some(heard) = post.heard.pop_front() {
            let size = size(&heard);
            post.bytes -= size;
            self.unread -= size;
            return Some(Some(heard));
        }
        let is_over = post.open == 0 && self.listener != Some(number);
        if is_over || self.gone.is_some() {
            return Some(None);
        }
        post.waker.register(waker);
        None
    }

    /// Ends a post, which was dropped.
    pub(super) fn close(&mut self, number: u64) {
        let Some(post) = self.posts.remove(&number) else { return };
        self.unread -= post.bytes;
        let was_listener = self.listener.take_if(|listener| *listener == number).is_some();
        if self.sharing == Sharing::Session {
            // A message that its stream did not take is for the next one.
            for heard in post.heard {
                if let ServerEvent::Message { line, .. } = heard
                    && was_listener
                {
                    self.keep(&line);
                }
            }
            return;
        }
        self.give_up(number, !post.is_mutating, "the client closed its stream");
    }

    /// Forgets the requests of a post, which are cancelled at the server if that is wanted.
    fn give_up(&mut self, number: u64, cancels: bool, why: &str) {
        for request in self.ids.of(number) {
            self.ids.forget(request);
            if cancels && self.gone.is_none() {
                self.queue(&cancellation(request, why));
            }
        }
    }

    /// Requests that were cancelled are not answered; the answer to one that may change something is still of
    /// interest.
    fn forget_cancelled(&mut self) {
        for (request, post) in take(&mut self.ids.cancelled) {
            let mut post = self.posts.get_mut(&post);
            if let Some(post) = post.as_mut().filter(|post| post.is_mutating) {
                post.is_cancelled = true;
                continue;
            }
            // It may have been cancelled twice.
            if self.ids.forget(request)
                && let Some(post) = &mut post
            {
                post.open -= 1;
                post.waker.wake();
            }
        }
    }

    fn queue(&mut self, line: &[u8]) {
        self.to_server.extend_from_slice(line);
        self.queued += line.len() as u64;
    }

    /// So many bytes were written to the server.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes as u64;
        if self.queued - self.written < MAX_WAITING_BYTES as u64 {
            self.waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// The server has ended: nothing more is answered.
    pub(super) fn end(&mut self, why: Gone) {
        let gone = self.gone.get_or_insert(why);
        self.to_server = BytesMut::new();
        for post in self.posts.values_mut() {
            for _ in 0..take(&mut post.open).min(1) {
                let is_unsent = post.from >= self.written;
                post.heard.push_back(ServerEvent::Failed(gone.failure(is_unsent)));
            }
            post.waker.wake();
        }
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// How many requests are waited for by their clients.
    pub(super) fn streams(&self) -> usize {
        self.posts.values().filter(|post| post.is_waited_for()).count()
    }

    /// Whether the server owes an answer, also to a client that has left.
    pub(super) fn owes(&self) -> bool {
        self.posts.values().any(|post| post.open > 0)
    }
}

#[derive(Debug, Default)]
struct Post {
    heard: VecDeque<ServerEvent>,
    bytes: usize,
    waker: AtomicWaker,
    /// How many of its requests are not answered.
    open: usize,
    /// Where its line begins, in what was queued for the server.
    from: u64,
    is_mutating: bool,
    /// Its client has cancelled it, and only its late answer is of interest.
    is_cancelled: bool,
    /// Whether its client is there.
    presence: Presence,
}

impl Post {
    /// Whether its client waits for answers.
    const fn is_waited_for(&self) -> bool {
        self.open > 0 && !self.is_cancelled
    }
}

/// Why a server answers nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// It could not be started, for this reason.
    NotStarted(Box<str>),
    /// It ended.
    Ended,
}

impl Gone {
    /// The failure of a request; of one that is unsent, the server has read nothing.
    fn failure(&self, is_unsent: bool) -> Failure {
        match self {
            Self::NotStarted(why) => {
                let facts = FailureInfo::new("server_not_started", Ran::No, Verdict::Permanent);
                Failure::said(why.to_string(), facts)
            }
            Self::Ended if is_unsent => Failure::SERVER_GONE_BEFORE,
            Self::Ended => Failure::SERVER_GONE,
        }
    }
}

fn size(heard: &ServerEvent) -> usize {
    match heard {
        ServerEvent::Message { line, .. } => line.len(),
        _ => 0,
    }
}

fn refusal(why: Refused) -> Response<Bytes> {
    let (code, text) = match why {
        Refused::Id => (
            INVALID_REQUEST,
            "the request was not forwarded: its id must be a string or an unambiguous number",
        ),
        Refused::Params => {
            (INVALID_PARAMS, "the request was not forwarded: a member of its params occurs twice")
        }
        Refused::Unreadable | Refused::TooMany => (
            PARSE_ERROR,
            "the body was not forwarded: it is not valid JSON (syntax error, invalid UTF-8 or a duplicate member name)",
        ),
    };
    let mut response = Response::new(answer::refusal("null", code, text));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

#[cfg(test)]
mod tests;
