//! The attempts of calls: until when one may take, and those that were given up, whose late answers are recognized.
use crate::{
    engine::{failure::Ending, limits::Limits, unknowns::Equals},
    wire::jsonrpc::Token,
};
use indexmap::IndexMap;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;
use tr_core::{FencingToken, ToolManifest, canonical::Key};

/// An attempt on the wire.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) client_id: Token,
    pub(super) ending: oneshot::Sender<Ending>,
    pub(super) progress_token: Option<Token>,
    pub(super) started: Instant,
    pub(super) last_sign: Instant,
    /// How long its clock stood.
    pub(super) stood: Duration,
    pub(super) owed: PendingAnswer,
}

impl Attempt {
    /// When it times out unless the server sends an answer or progress; `is_waiting` says whether its clock stands.
    pub(super) fn deadline(&self, limits: Limits, is_waiting: bool) -> Instant {
        let may_stand = if is_waiting { PATIENCE - self.stood } else { Duration::ZERO };
        self.started + self.patience(limits) + may_stand
    }

    /// Leaves out the time since `from`, in which the clock stood.
    pub(super) fn leave_out(&mut self, from: Instant, now: Instant) {
        let from = from.max(self.started);
        let stood = now.saturating_duration_since(from).min(PATIENCE - self.stood);
        self.last_sign = self.last_sign.max(self.last_sign.min(from) + stood);
        self.started += stood;
        self.stood += stood;
    }

    /// How long after its start it may take in all.
    pub(super) fn patience(&self, limits: Limits) -> Duration {
        (self.last_sign - self.started + limits.idle).min(limits.hard)
    }
}

/// A person may take this long, for each attempt. After it the attempt's clock goes on, lest a client that answers
/// nothing, or a server that always asks, keeps it for ever.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// More requests than servers have open.
const MOST: usize = 1_024;

/// The server's open requests.
#[derive(Debug, Default)]
pub(super) struct Asked {
    open: HashMap<Token, Instant>,
    /// Since when there is one.
    since: Option<Instant>,
}

impl Asked {
    pub(super) fn ask(&mut self, id: Token, now: Instant) {
        if self.open.len() < MOST {
            self.open.entry(id).or_insert(now);
            self.since.get_or_insert(now);
        }
    }

    /// The request has its answer, or the server no longer wants one. Returns since when the clock stood, if it goes on
    /// now.
    pub(super) fn end(&mut self, id: &Token) -> Option<Instant> {
        self.open.remove(id)?;
        self.resume()
    }

    /// Forgets requests that are open for too long, as [`end`](Self::end) does.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.open.retain(|_, asked| now.saturating_duration_since(*asked) < PATIENCE);
        self.resume()
    }

    /// Whether the clock stands.
    pub(super) fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    fn resume(&mut self) -> Option<Instant> {
        if self.open.is_empty() { self.since.take() } else { None }
    }
}

/// How many abandoned attempts are remembered.
pub(super) const LATE: usize = 4096;

/// A record's claim, under which a call runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) fence: FencingToken,
    pub(crate) in_store: bool,
    /// The record ends with its call.
    pub(crate) is_brief: bool,
}

/// The details of a given-up call, for the case that the server still answers it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingAnswer {
    pub(crate) claim: Option<Claim>,
    /// The key by which it blocks equal calls.
    pub(crate) equals: Option<Equals>,
    /// Whether its answer is kept for equal calls.
    pub(crate) is_kept: bool,
    /// The manifest with the codes by which the tool says that it did not run, or with its server's key.
    pub(crate) codes: Option<Arc<ToolManifest>>,
}

impl PendingAnswer {
    /// Whether other attempts of the call may have run, under its server's key: then only a success tells its end.
    pub(crate) fn is_one_of_several(&self) -> bool {
        self.codes.as_ref().is_some_and(|tool| tool.server_key.is_some())
    }
}

/// The newest abandoned attempts, and the client's progress tokens among theirs.
#[derive(Debug, Default)]
pub(super) struct Late {
    pub(super) attempts: IndexMap<Token, (PendingAnswer, bool)>,
    pub(super) tokens: VecDeque<Token>,
}

impl Late {
    pub(super) fn remember(&mut self, wire_id: Token, owed: PendingAnswer, pass: bool) {
        if self.attempts.len() == LATE {
            self.attempts.shift_remove_index(0);
        }
        self.attempts.insert(wire_id, (owed, pass));
    }

    pub(super) fn remember_token(&mut self, token: Option<Token>) {
        let Some(token) = token else { return };
        if self.tokens.len() == LATE / 64 {
            self.tokens.pop_front();
        }
        self.tokens.push_back(token);
    }
}

/// The calls in flight, by key.
#[derive(Debug, Default)]
pub(super) struct Groups(HashMap<Key, Group>);

#[derive(Debug, Default)]
struct Group {
    /// The calls that have not ended.
    open: usize,
    /// Of these, the calls that their clients have not cancelled.
    wanted: usize,
    /// The client's id of the call that sent the last attempt, which may have ended; `None` before the first.
    running: Option<Token>,
}

impl Groups {
    pub(super) fn join(&mut self, key: Key) {
        let group = self.0.entry(key).or_default();
        group.open += 1;
        group.wanted += 1;
    }

    pub(super) fn run(&mut self, key: &Key, id: &Token) {
        if let Some(group) = self.0.get_mut(key) {
            group.running = Some(id.clone());
        }
    }

    /// Counts a client's cancellation. Returns the call to cancel at the server, or `None` while another caller
    /// waits for the same end.
    pub(super) fn unwant(&mut self, key: &Key, id: &Token, was_wanted: bool) -> Option<Token> {
        let Some(group) = self.0.get_mut(key) else { return Some(id.clone()) };
        group.wanted = group.wanted.saturating_sub(usize::from(was_wanted));
        (group.wanted == 0).then(|| group.running.clone().unwrap_or_else(|| id.clone()))
    }

    pub(super) fn is_unwanted(&self, key: &Key) -> bool {
        self.0.get(key).is_some_and(|group| group.wanted == 0)
    }

    pub(super) fn leave(&mut self, key: &Key, was_wanted: bool) {
        let Some(group) = self.0.get_mut(key) else { return };
        group.open -= 1;
        group.wanted = group.wanted.saturating_sub(usize::from(was_wanted));
        if group.open == 0 {
            self.0.remove(key);
        }
    }
}
