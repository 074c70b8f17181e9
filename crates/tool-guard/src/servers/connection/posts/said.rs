//! What the server says: to which post each message goes.
use super::{Posts, Sharing, size};
use crate::{
    engine::{
        limits::MAX_WAITING_BYTES, presence::Presence, proxy::too_long, server_event::ServerEvent,
    },
    servers::connection::ids::For,
    wire::lines::Item,
};
use bytes::Bytes;
use tool_reliability::telemetry::TARGET;

/// How many bytes of the server's own messages are kept while no stream of the client's is open.
pub(super) const MAX_KEPT: usize = 256 * 1024;
/// How many bytes may wait for the clients of one server before those that read slowly get no more.
const MAX_UNREAD: usize = 16 * MAX_WAITING_BYTES;

impl Posts {
    /// Handles an item of the server's output.
    pub(in crate::servers::connection) fn on_server(&mut self, item: Item) {
        match item {
            Item::Line(lines) => {
                // Lines that concern no call come together.
                for line in lines.split_inclusive(|byte| *byte == b'\n') {
                    let line = lines.slice_ref(line.trim_ascii_end());
                    if line.is_empty() {
                        continue;
                    }
                    let mut ids = std::mem::take(&mut self.ids);
                    ids.sort(&line, |one| self.deliver(one));
                    self.ids = ids;
                    self.end_slow();
                }
            }
            Item::Part(_) => {}
            Item::Oversized(line) => {
                let whom = self.ids.oversized(line);
                self.deliver(whom);
            }
        }
    }

    fn deliver(&mut self, one: For) {
        match one {
            For::Post { post, line, answers } => {
                self.hear(post, ServerEvent::line(line, answers), answers);
            }
            For::Client { line, asks } => match self.stream(asks) {
                Some(post) => self.hear(post, ServerEvent::line(line, false), false),
                None if self.sharing == Sharing::Session => self.keep(&line),
                None => tracing::warn!(target: TARGET, event = "mcp_unaddressed"),
            },
            For::Oversized(post, line) => self.hear(post, ServerEvent::Oversized(line), true),
            For::Server(line) => {
                tracing::warn!(target: TARGET, event = "line_dropped", from = "server", bytes = line.bytes);
                self.queue(&too_long(&line, line.id.as_deref()));
            }
            For::Nobody => tracing::debug!(target: TARGET, event = "mcp_unmatched"),
        }
    }

    /// The stream for a message of the server's that names none. One that its client does not read now is the last
    /// choice, since the client may resume it.
    fn stream(&self, asks: bool) -> Option<u64> {
        let mut open = self.waited_for(Presence::is_here);
        let last = open.clone().max();
        let only = open.next().filter(|_| open.next().is_none());
        match self.sharing {
            // What it asks while it works on one request, it most likely asks for that.
            Sharing::Session if asks => only.or(self.listener).or(last),
            Sharing::Session => self.listener.or(last),
            // A message for one client is for no other, and may come after its request has ended.
            Sharing::Clients => return only.filter(|_| !self.is_mixed),
        }
        .or_else(|| self.waited_for(Presence::may_read).max())
    }

    /// The posts whose clients wait for answers.
    fn waited_for(&self, is_it: fn(&Presence) -> bool) -> impl Iterator<Item = u64> + Clone {
        let open = self
            .posts
            .iter()
            .filter(move |(_, post)| post.is_waited_for() && is_it(&post.presence));
        open.map(|(number, _)| *number)
    }

    fn hear(&mut self, number: u64, heard: ServerEvent, answers: bool) {
        let size = size(&heard);
        // An answer waits, however long it is.
        if !answers && self.sharing == Sharing::Clients && !self.may_hold(number, size) {
            tracing::warn!(target: TARGET, event = "mcp_message_dropped", bytes = size);
            if self.slow.last() != Some(&number) {
                self.slow.push(number);
            }
            return;
        }
        let Some(post) = self.posts.get_mut(&number) else { return };
        post.open -= usize::from(answers);
        post.bytes += size;
        self.unread += size;
        post.heard.push_back(heard);
        post.waker.wake();
    }

    /// Whether a post may hold back a message, beside those that its client has not read.
    fn may_hold(&self, number: u64, size: usize) -> bool {
        let held = self.posts.get(&number).map_or(0, |post| post.bytes);
        let most = if self.unread < MAX_UNREAD { MAX_WAITING_BYTES } else { 0 };
        held == 0 || held + size <= most
    }

    /// Ends the subscriptions of clients that read too slowly: they are nothing without all of their messages.
    fn end_slow(&mut self) {
        for number in std::mem::take(&mut self.slow) {
            if !self.ids.listens(number) {
                continue;
            }
            self.give_up(number, true, "the client reads too slowly");
            if let Some(post) = self.posts.get_mut(&number) {
                post.open = 0;
                post.waker.wake();
            }
        }
    }

    pub(super) fn keep(&mut self, line: &[u8]) {
        self.kept_bytes += line.len();
        // The whole output may be held by a part of it.
        self.kept.push_back(Bytes::copy_from_slice(line));
        while self.kept_bytes > MAX_KEPT
            && let Some(dropped) = self.kept.pop_front()
        {
            self.kept_bytes -= dropped.len();
            tracing::warn!(target: TARGET, event = "mcp_message_dropped", bytes = dropped.len());
        }
    }

    pub(super) fn give_kept(&mut self, number: u64) {
        self.kept_bytes = 0;
        for line in std::mem::take(&mut self.kept) {
            self.hear(number, ServerEvent::line(line, false), false);
        }
    }
}
