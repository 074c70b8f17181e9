//! A client's call: its line, and the answer that it gets.
use super::{check::Checked, failure::Answer, unknowns::Trace};
use crate::wire::{
    jsonrpc::{self, Line, Token},
    params::{self, Params},
};
use bytes::Bytes;
use std::{
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tr_core::{
    FencingToken, Json, SystemClock, ToolCall, WallClock as _, canonical::Pointer, internal::lock,
};

/// A client's call: its line, and the positions of the parts that the guard may replace.
#[derive(Debug)]
pub(crate) struct McpCall {
    pub(crate) line: Bytes,
    pub(crate) tool: Box<str>,
    pub(crate) id: Token,
    pub(super) id_range: Range<usize>,
    pub(super) token: Option<(Token, Range<usize>)>,
    pub(super) own_id_used: AtomicBool,
    /// When its last attempt was sent, in milliseconds since 1970, if it can be asked about.
    pub(super) sent_at: AtomicU64,
    /// Whether another open request of the client's has its id.
    pub(crate) is_id_taken: bool,
    /// Whether its version of MCP wants every result to name its type.
    pub(crate) wants_result_type: bool,
    pub(super) answer: Mutex<Option<Answer>>,
    /// How its end is reported after its caller stopped waiting.
    pub(crate) trace: Trace,
    /// The run of unknown outcome that it repeats, with its key.
    pub(crate) repeats: Option<FencingToken>,
    /// What can be asked about it, if its outcome is unknown.
    pub(crate) checked: Option<Arc<Checked>>,
    /// Whether it is the guard's own, which asks about another.
    pub(crate) asks: bool,
}

impl McpCall {
    /// A call of this tool without a line, as of a host that runs it itself.
    pub(crate) fn new(id: Token, tool: &str) -> Self {
        Self {
            line: Bytes::new(),
            tool: tool.into(),
            id,
            id_range: 0..0,
            token: None,
            own_id_used: AtomicBool::new(false),
            sent_at: AtomicU64::new(0),
            is_id_taken: false,
            wants_result_type: false,
            answer: Mutex::new(None),
            trace: Trace::default(),
            repeats: None,
            checked: None,
            asks: false,
        }
    }

    /// The guard's own call, whose answer is read.
    pub(super) fn asking(id: Token, tool: &str, line: Bytes) -> Self {
        // Else a success is not copied.
        let trace = Trace { late: Some(Duration::ZERO), ..Trace::default() };
        Self { line, trace, asks: true, ..Self::new(id, tool) }
    }

    /// The call with this JSON at a place in its arguments, and the arguments with it; `None` if they have no such place.
    pub(crate) fn with_argument(&self, at: &Pointer, value: &str) -> Option<(Self, Json)> {
        let Line::One(message) = jsonrpc::read(&self.line) else { return None };
        let arguments = Params::of(&message).arguments?;
        let (place, text) = params::value_put(arguments.get(), at, value)?;
        let mut changed = arguments.get().to_owned();
        changed.replace_range(place.clone(), &text);
        let start = jsonrpc::range(&self.line, arguments).start;
        let place = start + place.start..start + place.end;
        let moved = |part: &Range<usize>| {
            let by = |at: usize| if at >= place.end { at - place.len() + text.len() } else { at };
            by(part.start)..by(part.end)
        };
        let call = Self {
            line: jsonrpc::splice(&self.line, &[(place.clone(), &text)]),
            id_range: moved(&self.id_range),
            token: self.token.as_ref().map(|(token, part)| (token.clone(), moved(part))),
            ..self.again()
        };
        Some((call, Json::from_text(changed).ok()?))
    }

    /// The call as one that repeats this run, of unknown outcome.
    pub(crate) fn repeating(&self, run: FencingToken) -> Self {
        Self { repeats: Some(run), ..self.again() }
    }

    /// The same before its first attempt.
    fn again(&self) -> Self {
        Self {
            line: self.line.clone(),
            id_range: self.id_range.clone(),
            token: self.token.clone(),
            is_id_taken: self.is_id_taken,
            wants_result_type: self.wants_result_type,
            trace: self.trace,
            checked: self.checked.clone(),
            ..Self::new(self.id.clone(), &self.tool)
        }
    }

    /// The client's call behind a guarded call.
    pub(crate) fn of(call: &ToolCall) -> Option<&Arc<Self>> {
        call.parts().attachment.get()
    }

    /// The client's id as JSON text.
    pub(crate) fn id_text(&self) -> &str {
        std::str::from_utf8(&self.line[self.id_range.clone()]).expect("a part of JSON text")
    }

    /// The client's progress token, and its JSON text.
    pub(crate) fn progress_token(&self) -> Option<(&Token, &str)> {
        let (token, range) = self.token.as_ref()?;
        Some((token, std::str::from_utf8(&self.line[range.clone()]).expect("a part of JSON text")))
    }

    /// The line under another id, which is also its progress token.
    pub(crate) fn line_as(&self, id: &str) -> Bytes {
        let mut parts = vec![(self.id_range.clone(), id)];
        parts.extend(self.token.iter().map(|(_, range)| (range.clone(), id)));
        parts.sort_by_key(|(range, _)| range.start);
        jsonrpc::splice(&self.line, &parts)
    }

    /// Whether the client's own id is still unused on the wire; it is used once.
    pub(crate) fn take_own_id(&self) -> bool {
        !self.own_id_used.swap(true, Ordering::Relaxed)
    }

    /// An attempt is sent now.
    pub(super) fn send(&self) {
        if self.checked.is_some() {
            self.sent_at.store(SystemClock.unix_ms(), Ordering::Relaxed);
        }
    }

    pub(super) fn sent_at(&self) -> u64 {
        self.sent_at.load(Ordering::Relaxed)
    }

    pub(crate) fn is_own_id_used(&self) -> bool {
        self.own_id_used.load(Ordering::Relaxed)
    }

    /// Keeps the answer of the latest attempt, `None` while there is none, in place of that of an earlier one.
    pub(crate) fn keep(&self, answer: Option<Answer>) {
        *lock(&self.answer) = answer;
    }

    /// Whether the answer of the latest attempt must pass unchanged.
    pub(crate) fn is_opaque(&self) -> bool {
        lock(&self.answer).as_ref().is_some_and(|answer| answer.opaque)
    }

    /// The answer of the latest attempt, under the client's id.
    pub(crate) fn answer(&self) -> Option<Bytes> {
        let answer = lock(&self.answer).take()?;
        let theirs = serde_json::from_slice(&answer.line[answer.id_range.clone()]).ok();
        // The server may spell the client's id in its own way; that passes too.
        if theirs.and_then(Token::read).is_some_and(|theirs| theirs == self.id) {
            return Some(answer.line);
        }
        Some(jsonrpc::splice(&answer.line, &[(answer.id_range, self.id_text())]))
    }
}
