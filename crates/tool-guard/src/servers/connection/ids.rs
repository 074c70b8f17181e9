//! The ids of requests, and the tokens of progress, on the input of a server that many posts share: no I/O.
//!
//! Clients do not know of one another, so their ids collide. Each request gets a number of its own on the wire,
//! which is its progress token, too. What the server says is given back under the client's own ids and tokens.
use crate::wire::{
    batch,
    elements::elements,
    jsonrpc::{self, Line, Message, Token},
    lines::Oversized,
    params::{Meta, Params},
    scan::{self, Guess},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

/// More requests than clients leave open.
pub(super) const MAX_OPEN: usize = 10_000;
/// More requests than a server leaves open.
const MAX_ASKED: usize = 1_000;

/// The requests that the server has not answered, and those that it has sent itself.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// The last number that was given out.
    last: u64,
    open: HashMap<u64, Open>,
    /// The server's own requests, by its ids.
    asked: HashSet<Token>,
    /// The requests that their client has cancelled since this was last taken, and their posts.
    pub(super) cancelled: Vec<(u64, u64)>,
}

/// A client's request.
#[derive(Debug)]
struct Open {
    post: u64,
    /// The scope of its ids: a client names only requests of its own.
    scope: u64,
    id: Token,
    /// The id as the client wrote it.
    text: Box<str>,
    /// Its progress token as the client wrote it.
    token: Option<Box<str>>,
    /// Whether it is a subscription.
    listens: bool,
}

/// Why a line is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// No JSON, or ambiguous.
    Unreadable,
    /// A request's id is neither a string nor an unambiguous number.
    Id,
    /// `params` or `_meta` names a member twice.
    Params,
    /// Too many requests are open.
    TooMany,
}

/// For whom a line of the server's is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum For {
    /// For this post.
    Post {
        post: u64,
        line: Bytes,
        /// Whether it answers one of its requests.
        answers: bool,
    },
    /// For the client, whatever it has posted.
    Client {
        line: Bytes,
        /// Whether it waits for an answer.
        asks: bool,
    },
    /// The answer, to a request of this post, is longer than the limit.
    Oversized(u64, Oversized),
    /// For the server itself: a request of its own is longer than the limit.
    Server(Oversized),
    /// No client waits for it.
    Nobody,
}

/// The parts of a line that are replaced.
type Parts = Vec<(Range<usize>, String)>;

impl Ids {
    /// The line of a client's, as one line for the server, and how many requests are in it. `None` if there is
    /// nothing to send: it cancels what is no longer open.
    pub(super) fn rewrite(
        &mut self,
        line: &Bytes,
        post: u64,
        scope: u64,
    ) -> Result<(Option<Bytes>, usize), Refused> {
        let (mut parts, mut opened) = (Parts::new(), Vec::new());
        let sends = match jsonrpc::read(line) {
            Line::One(message) => {
                self.message(line, &message, (post, scope), &mut parts, &mut opened)
            }
            Line::Batch => {
                let all = elements(line).ok_or(Refused::Unreadable)?;
                let mut messages = all.filter(|part| batch::may_be_message(part));
                messages.try_fold(false, |before, part| match jsonrpc::read(part) {
                    Line::One(message) => self
                        .message(line, &message, (post, scope), &mut parts, &mut opened)
                        .map(|this| this || before),
                    _ => Err(Refused::Unreadable),
                })
            }
            Line::Unreadable { .. } => Err(Refused::Unreadable),
        };
        let sends = sends.inspect_err(|_| {
            opened.iter().for_each(|id| drop(self.open.remove(id)));
            self.cancelled.clear();
        })?;
        parts.sort_by_key(|(place, _)| place.start);
        let parts: Vec<_> = parts.iter().map(|(place, text)| (place.clone(), &**text)).collect();
        Ok((sends.then(|| jsonrpc::with_newline(&jsonrpc::splice(line, &parts))), opened.len()))
    }

    /// Handles a message of a client's; returns whether it is sent.
    fn message(
        &mut self,
        line: &Bytes,
        message: &Message<'_>,
        (post, scope): (u64, u64),
        parts: &mut Parts,
        opened: &mut Vec<u64>,
    ) -> Result<bool, Refused> {
        let params: Params<'_> = members(message.params)?;
        let Some(method) = message.method.as_deref() else {
            if let Some(id) = message.token() {
                self.asked.remove(&id);
            }
            return Ok(true);
        };
        let Some(raw) = message.id else {
            let Some(raw) = params.request_id.filter(|_| method == "notifications/cancelled")
            else {
                return Ok(true);
            };
            let id = Token::read(raw);
            let mine =
                |(_, open): &(&u64, &Open)| open.scope == scope && Some(&open.id) == id.as_ref();
            // Under an id of another's it would cancel that one's request.
            let Some((number, open)) = self.open.iter().filter(mine).max_by_key(|it| it.0) else {
                parts.push((jsonrpc::range(line, raw), "null".into()));
                return Ok(false);
            };
            self.cancelled.push((*number, open.post));
            parts.push((jsonrpc::range(line, raw), number.to_string()));
            return Ok(true);
        };
        let id = Token::read(raw).ok_or(Refused::Id)?;
        if self.open.len() >= MAX_OPEN {
            return Err(Refused::TooMany);
        }
        let meta: Meta<'_> = members(params.meta)?;
        self.last += 1;
        let number = self.last;
        parts.push((jsonrpc::range(line, raw), number.to_string()));
        let token = meta.progress_token.filter(|raw| Token::read(raw).is_some());
        if let Some(raw) = token {
            parts.push((jsonrpc::range(line, raw), number.to_string()));
        }
        let open = Open {
            post,
            scope,
            id,
            text: raw.get().into(),
            token: token.map(|raw| raw.get().into()),
            listens: method == "subscriptions/listen",
        };
        self.open.insert(number, open);
        opened.push(number);
        Ok(true)
    }

    /// For whom the messages of a line of the server's are.
    pub(super) fn sort(&mut self, line: &Bytes, mut take: impl FnMut(For)) {
        if !scan::bare(line).starts_with(b"[") {
            return take(self.one(line));
        }
        for part in batch::parts(line).filter(|part| batch::may_be_message(part)) {
            take(self.one(&part));
        }
    }

    fn one(&mut self, line: &Bytes) -> For {
        match jsonrpc::read(line) {
            Line::One(message) => self.read(line, &message),
            Line::Batch => For::Nobody,
            Line::Unreadable { .. } => self.unreadable(line),
        }
    }

    fn read(&mut self, line: &Bytes, message: &Message<'_>) -> For {
        let Some(method) = message.method.as_deref() else {
            let Some((raw, number)) = numbered(message.id) else { return For::Nobody };
            return self.answer(line, number, jsonrpc::range(line, raw), message.result);
        };
        let params = Params::of(message);
        match method {
            "notifications/progress" => {
                let raw = params.progress_token;
                let open = raw.and_then(|raw| self.open.get(&number(raw)?));
                match (raw, open.and_then(|open| Some((open.post, open.token.as_deref()?)))) {
                    (Some(raw), Some((post, token))) => {
                        For::Post { post, line: replaced(line, raw, token), answers: false }
                    }
                    _ => For::Nobody,
                }
            }
            "notifications/cancelled" => {
                let raw = params.request_id;
                if raw.and_then(Token::read).is_some_and(|id| self.asked.remove(&id)) {
                    return For::Client { line: line.clone(), asks: false };
                }
                let Some((raw, number)) = numbered(raw) else { return For::Nobody };
                let Some(open) = self.open.get(&number) else { return For::Nobody };
                let (line, post) = (replaced(line, raw, &open.text), open.post);
                // A subscription ends so.
                let answers = open.listens;
                if answers {
                    self.open.remove(&number);
                }
                For::Post { post, line, answers }
            }
            _ => self.other(line, message, params.meta().subscription),
        }
    }

    /// A request of the server's, or a notification.
    fn other(&mut self, line: &Bytes, message: &Message<'_>, names: Option<&RawValue>) -> For {
        if let Some(raw) = names
            && let Some(open) = number(raw).and_then(|number| self.open.get(&number))
        {
            let line = replaced(line, raw, &open.text);
            return For::Post { post: open.post, line, answers: false };
        }
        let id = message.token();
        if let Some(id) = &id
            && self.asked.len() < MAX_ASKED
        {
            self.asked.insert(id.clone());
        }
        For::Client { line: line.clone(), asks: id.is_some() }
    }

    fn answer(
        &mut self,
        line: &Bytes,
        number: u64,
        place: Range<usize>,
        result: Option<&RawValue>,
    ) -> For {
        let Some(open) = self.open.remove(&number) else { return For::Nobody };
        let mut parts = vec![(place, &*open.text)];
        if let Some(raw) = result.filter(|_| open.listens).and_then(subscription) {
            parts.push((jsonrpc::range(line, raw), &*open.text));
            parts.sort_by_key(|(place, _)| place.start);
        }
        For::Post { post: open.post, line: jsonrpc::splice(line, &parts), answers: true }
    }

    /// A line that is no valid JSON: an answer of which the id can be made out ends its request all the same.
    fn unreadable(&mut self, line: &Bytes) -> For {
        if let Some(repaired) = jsonrpc::repaired(line)
            && let Line::One(message) = jsonrpc::read(&repaired)
        {
            return self.read(&repaired, &message);
        }
        let guess = Guess::of(line).filter(|guess| guess.is_answer);
        match guess.and_then(|guess| Some((guess.id.number()?, guess.place))) {
            Some((number, place)) => self.answer(line, number, place, None),
            None => For::Nobody,
        }
    }

    /// For whom a line is that was too long to be kept.
    pub(super) fn oversized(&mut self, line: Oversized) -> For {
        if line.asks {
            return if line.id.is_some() { For::Server(line) } else { For::Nobody };
        }
        let number = line.id.as_deref().and_then(|id| id.parse().ok());
        match number.and_then(|number: u64| self.open.remove(&number)) {
            Some(open) => For::Oversized(open.post, Oversized { id: Some(open.text), ..line }),
            None => For::Nobody,
        }
    }

    /// The numbers of a post's open requests.
    pub(super) fn of(&self, post: u64) -> Vec<u64> {
        let of_it = self.open.iter().filter(|(_, open)| open.post == post);
        of_it.map(|(number, _)| *number).collect()
    }

    /// Whether a post has a subscription.
    pub(super) fn listens(&self, post: u64) -> bool {
        self.open.values().any(|open| open.post == post && open.listens)
    }

    /// Forgets a request, whose answer no client waits for; `false` if it was forgotten before.
    pub(super) fn forget(&mut self, number: u64) -> bool {
        self.open.remove(&number).is_some()
    }

    /// Forgets the requests of other posts than these.
    pub(super) fn keep(&mut self, is_kept: impl Fn(u64) -> bool) {
        self.open.retain(|_, open| is_kept(open.post));
    }
}

/// The members of an object; of anything else there are none.
fn members<'l, T: Default + Deserialize<'l>>(raw: Option<&'l RawValue>) -> Result<T, Refused> {
    match raw.map(RawValue::get).filter(|text| text.starts_with('{')) {
        Some(text) => jsonrpc::object(text).map_err(|_| Refused::Params),
        None => Ok(T::default()),
    }
}

/// The line with this text in the place of a part.
fn replaced(line: &Bytes, part: &RawValue, text: &str) -> Bytes {
    jsonrpc::splice(line, &[(jsonrpc::range(line, part), text)])
}

/// The number of a request on the wire.
fn number(raw: &RawValue) -> Option<u64> {
    Token::read(raw)?.number()
}

/// A number on the wire, and where it stands.
fn numbered(raw: Option<&RawValue>) -> Option<(&RawValue, u64)> {
    Some((raw?, number(raw?)?))
}

/// The id of the subscription that a message belongs to, in the `_meta` of its params or its result.
fn subscription(of: &RawValue) -> Option<&RawValue> {
    jsonrpc::object::<Params<'_>>(of.get()).ok()?.meta().subscription
}

#[cfg(test)]
mod tests;
