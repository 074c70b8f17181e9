//! Matches answers, progress and cancellations with the attempts of calls.
//!
//! The first attempt of a call is sent under the client's own id; each later one gets an id of the guard's.
//! A client's id is on the wire once, so an answer always identifies the attempt that it ends. If a client
//! reuses an id while an answer to it may still come, the new request gets an id of the guard's at once.
mod attempt;

pub(crate) use self::attempt::{Claim, PendingAnswer};

use self::attempt::{Asked, Attempt, Groups, Late};
use super::{
    call::McpCall,
    failure::{Ending, Failure},
    limits::Limits,
};
use crate::wire::jsonrpc::Token;
use bytes::Bytes;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;
use tr_core::canonical::Key;

/// More calls than clients have in flight.
pub(crate) const MAX_CALLS: usize = 10_000;

/// The calls and attempts in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// The prefix of the guard's own ids.
    prefix: Box<str>,
    sent: u64,
    /// By the client's id.
    calls: HashMap<Token, CallState>,
    /// By the id on the wire.
    attempts: HashMap<Token, Attempt>,
    /// By the progress token on the wire: the id on the wire.
    progress: HashMap<Token, Token>,
    /// The progress tokens of calls that the server has answered and the client has not.
    answered: HashSet<Token>,
    late: Late,
    /// Calls with the same key.
    groups: Groups,
    asked: Asked,
}

#[derive(Debug, Default)]
struct CallState {
    /// The key of calls that wait for the same end.
    key: Option<Key>,
    /// Whether the client has cancelled it; it goes on for others that wait for its end.
    unwanted: bool,
    /// The id of the attempt that is on the wire now.
    current: Option<Token>,
    cancelled: bool,
    /// Whether an attempt was sent.
    sent: bool,
    /// The client's progress token and its JSON text, if it gave one.
    progress_token: Option<(Token, Box<str>)>,
    /// The highest progress that the client has seen.
    progress: Option<f64>,
}

/// An attempt that is being sent to the server.
#[derive(Debug)]
pub(crate) struct Launched {
    /// The id of its answer.
    pub(crate) wire_id: Token,
    /// The line to send.
    pub(crate) line: Bytes,
    /// Receives its end.
    pub(crate) ending: oneshot::Receiver<Ending>,
}

/// The attempt that an answer belongs to.
#[derive(Debug)]
pub(crate) enum Answered {
    /// An attempt whose caller waits.
    Attempt {
        /// The channel to that caller.
        ending: oneshot::Sender<Ending>,
        /// Whether the call leaves a record.
        recorded: bool,
    },
    /// An attempt that was given up.
    Late {
        /// The recipient of the late answer.
        owed: PendingAnswer,
        /// Whether the client cancelled the call, and would have received this answer without the guard.
        pass: bool,
    },
    /// No attempt of the guard's.
    Unmatched,
}

/// What to do with a progress notification or a cancellation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Relay {
    /// Forward it unchanged.
    Raw,
    /// Forward it with its token or id replaced by this JSON text.
    With(Box<str>),
    /// Discard it: the other side does not know the id or token.
    Discarded,
}

/// Why a call cannot begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The client has a call with this id in flight.
    InUse,
    /// The most allowed calls are in flight.
    TooMany,
}

impl InFlight {
    /// The guard's own ids will begin with `prefix`, which no client's id may.
    pub(crate) fn new(prefix: impl Into<Box<str>>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// Begins a client's call.
    pub(crate) fn open(&mut self, call: &McpCall) -> Result<(), OpenError> {
        let id = &call.id;
        if self.calls.contains_key(id) || self.attempts.contains_key(id) {
            return Err(OpenError::InUse);
        }
        if self.calls.len() >= MAX_CALLS {
            return Err(OpenError::TooMany);
        }
        let progress_token =
            call.progress_token().map(|(token, text)| (token.clone(), text.into()));
        self.calls.insert(id.clone(), CallState { progress_token, ..CallState::default() });
        Ok(())
    }

    /// Ends a client's call with its answer; returns whether the client still waits for it.
    pub(crate) fn close(&mut self, id: &Token) -> bool {
        let Some(call) = self.calls.remove(id) else { return false };
        if let Some((token, _)) = &call.progress_token {
            self.answered.remove(token);
        }
        if let Some(key) = &call.key {
            self.groups.leave(key, !call.unwanted);
        }
        !call.cancelled && !call.unwanted
    }

    /// Registers a begun call under this key.
    pub(crate) fn name(&mut self, id: &Token, key: Key) {
        if let Some(call) = self.calls.get_mut(id) {
            call.key = Some(key);
            self.groups.join(key);
        }
    }

    /// Begins another attempt of a call; `None` if the client has cancelled it.
    pub(crate) fn launch(
        &mut self,
        call: &Arc<McpCall>,
        owed: PendingAnswer,
        now: Instant,
    ) -> Option<Launched> {
        let state = self.calls.get_mut(&call.id)?;
        if state.cancelled || state.key.is_some_and(|key| self.groups.is_unwanted(&key)) {
            return None;
        }
        if let Some(key) = &state.key {
            self.groups.run(key, &call.id);
        }
        let own_id =
            call.take_own_id() && !call.is_id_taken && !self.late.attempts.contains_key(&call.id);
        let (wire_id, wire_token, line) = if own_id {
            let token = call.progress_token().map(|(token, _)| token.clone());
            (call.id.clone(), token, call.line.clone())
        } else {
            let wire_id = Self::next_id(&self.prefix, &mut self.sent);
            let line = call.line_as(&wire_id.to_json());
            let token = call.progress_token().map(|_| wire_id.clone());
            (wire_id, token, line)
        };
        let (sender, ending) = oneshot::channel();
        if let Some(token) = &wire_token {
            self.progress.insert(token.clone(), wire_id.clone());
        }
        let attempt = Attempt {
            client_id: call.id.clone(),
            ending: sender,
            progress_token: wire_token,
            started: now,
            last_sign: now,
            stood: Duration::ZERO,
            owed,
        };
        self.attempts.insert(wire_id.clone(), attempt);
        (state.current, state.sent) = (Some(wire_id.clone()), true);
        Some(Launched { wire_id, line, ending })
    }

    /// An id of the guard's that was not on the wire.
    pub(crate) fn own_id(&mut self) -> Token {
        Self::next_id(&self.prefix, &mut self.sent)
    }

    fn next_id(prefix: &str, sent: &mut u64) -> Token {
        *sent += 1;
        Token::Text(format!("{prefix}{sent}").into())
    }

    /// Whether there is a begun call of which nothing was sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.calls.values().any(|call| !call.sent && !call.cancelled)
    }

    /// Registers another request with `id`, which is on the wire already.
    pub(crate) fn forget(&mut self, id: &Token) {
        self.late.attempts.shift_remove(id);
    }

    /// Whether `id` is, or was, that of an attempt.
    pub(crate) fn knows(&self, id: &Token) -> bool {
        self.may_be_answered(id) || self.is_ours(id)
    }

    /// Whether an answer under `id` may be that to a call of the client's, in flight or given up.
    pub(crate) fn may_be_answered(&self, id: &Token) -> bool {
        self.attempts.contains_key(id)
            || self.calls.contains_key(id)
            || self.late.attempts.contains_key(id)
    }

    /// Whether the guard made this id or token, so that no client knows it.
    pub(super) fn is_ours(&self, token: &Token) -> bool {
        matches!(token, Token::Text(text) if text.starts_with(&*self.prefix))
    }

    /// Handles the server's answer to `wire_id`.
    pub(crate) fn answered(&mut self, wire_id: &Token) -> Answered {
        if let Some(attempt) = self.take(wire_id) {
            if self.calls.contains_key(&attempt.client_id) {
                let token = attempt.progress_token.filter(|token| !self.is_ours(token));
                self.answered.extend(token);
            }
            let recorded = attempt.owed.claim.is_some() || attempt.owed.is_kept;
            return Answered::Attempt { ending: attempt.ending, recorded };
        }
        match self.late.attempts.shift_remove(wire_id) {
            Some((owed, pass)) => Answered::Late { owed, pass },
            // The client gets it under the id of its call, and once.
            None if self.is_ours(wire_id) || self.calls.contains_key(wire_id) => {
                Answered::Late { owed: PendingAnswer::default(), pass: false }
            }
            None => Answered::Unmatched,
        }
    }

    /// Abandons `wire_id`; returns the sender of its end if the server still works on it.
    pub(crate) fn abandon(&mut self, wire_id: &Token) -> Option<oneshot::Sender<Ending>> {
        let attempt = self.take(wire_id)?;
        if !self.is_ours(wire_id) {
            self.late.remember_token(attempt.progress_token);
        }
        self.late.remember(wire_id.clone(), attempt.owed, false);
        Some(attempt.ending)
    }

    /// The server asks the client: the clock of all calls stands until it has its answer.
    pub(crate) fn ask(&mut self, id: Token, now: Instant) {
        if !self.attempts.is_empty() {
            self.asked.ask(id, now);
        }
    }

    /// The client has answered, or need not; returns whether the clock goes on now.
    pub(crate) fn end_ask(&mut self, id: &Token, now: Instant) -> bool {
        self.asked.end(id).inspect(|from| self.leave_out(*from, now)).is_some()
    }

    fn leave_out(&mut self, from: Instant, now: Instant) {
        self.attempts.values_mut().for_each(|attempt| attempt.leave_out(from, now));
    }

    /// When the first attempt times out unless the server sends something.
    pub(crate) fn first_deadline(&self, limits: Limits) -> Option<Instant> {
        let is_waiting = self.asked.is_waiting();
        self.attempts.values().map(|attempt| attempt.deadline(limits, is_waiting)).min()
    }

    /// Times out attempts; returns the ids under which the server still works on them.
    pub(crate) fn end_overdue(&mut self, limits: Limits, now: Instant) -> Vec<Token> {
        if let Some(from) = self.asked.expire(now) {
            self.leave_out(from, now);
        }
        let is_waiting = self.asked.is_waiting();
        let is_overdue = |attempt: &Attempt| attempt.deadline(limits, is_waiting) <= now;
        let overdue = self.attempts.iter().filter(|(_, attempt)| is_overdue(attempt));
        let overdue = overdue.map(|(id, attempt)| (id.clone(), attempt.patience(limits)));
        let mut ended = Vec::new();
        for (id, after) in overdue.collect::<Vec<_>>() {
            let Some(ending) = self.abandon(&id) else { continue };
            // A dropped receiver has stopped waiting.
            let _ = ending.send(Ending::Overdue(after));
            ended.push(id);
        }
        ended
    }

    /// Handles the server's progress under `token`.
    pub(crate) fn progressed(
        &mut self,
        token: &Token,
        progress: Option<f64>,
        now: Instant,
    ) -> Relay {
        let Some(wire_id) = self.progress.get(token) else {
            // The client would get it before the answer, which may still be recorded.
            let is_late = self.answered.contains(token);
            let unheard = is_late || self.is_ours(token) || self.late.tokens.contains(token);
            return if unheard { Relay::Discarded } else { Relay::Raw };
        };
        let Some(attempt) = self.attempts.get_mut(wire_id) else { return Relay::Discarded };
        attempt.last_sign = now;
        let first = attempt.client_id == *wire_id;
        let Some(call) = self.calls.get_mut(&attempt.client_id) else { return Relay::Discarded };
        // Progress must grow. A second attempt starts from 0, so the client gets its progress only once it
        // exceeds that of the first.
        if !first && progress.is_some() && progress <= call.progress {
            return Relay::Discarded;
        }
        call.progress = progress.or(call.progress);
        match (&call.progress_token, first) {
            (_, true) => Relay::Raw,
            (Some((_, text)), false) => Relay::With(text.clone()),
            (None, false) => Relay::Discarded,
        }
    }

    /// Handles the client's cancellation of the call `id`; `None` if no call with this id is in flight.
    pub(crate) fn cancel(&mut self, id: &Token) -> Option<Relay> {
        let call = self.calls.get_mut(id)?;
        let mut running = id.clone();
        if let Some(key) = call.key {
            let was_wanted = !std::mem::replace(&mut call.unwanted, true);
            match self.groups.unwant(&key, id, was_wanted) {
                Some(id) => running = id,
                None => return Some(Relay::Discarded),
            }
        }
        let Some(call) = self.calls.get_mut(&running) else { return Some(Relay::Discarded) };
        call.cancelled = true;
        let Some(wire_id) = call.current.take() else { return Some(Relay::Discarded) };
        let Some(attempt) = self.take(&wire_id) else { return Some(Relay::Discarded) };
        // Under the client's own id and token it is the same line as without the guard.
        let own = wire_id == running;
        self.late.remember(wire_id.clone(), attempt.owed, own);
        // A dropped attempt has stopped waiting.
        let _ = attempt.ending.send(Ending::Failed(Failure::CANCELLED));
        Some(if wire_id == *id { Relay::Raw } else { Relay::With(wire_id.to_json().into()) })
    }

    /// Ends all attempts, since the server has ended, for this reason.
    pub(crate) fn server_gone(&mut self, why: impl Fn() -> Failure) {
        self.progress.clear();
        for (_, attempt) in self.attempts.drain() {
            let _ = attempt.ending.send(Ending::Failed(why()));
        }
    }

    fn take(&mut self, wire_id: &Token) -> Option<Attempt> {
        let attempt = self.attempts.remove(wire_id)?;
        if let Some(token) = &attempt.progress_token
            && self.progress.get(token) == Some(wire_id)
        {
            self.progress.remove(token);
        }
        if let Some(call) = self.calls.get_mut(&attempt.client_id) {
            call.current.take_if(|current| current == wire_id);
        }
        if self.attempts.is_empty() {
            self.asked = Asked::default();
        }
        Some(attempt)
    }
}

#[cfg(test)]
mod tests;
