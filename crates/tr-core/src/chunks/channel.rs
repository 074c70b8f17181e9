//! The channel from a tool to the consumer of its chunks: bounded and in order.
use super::{ChunkLimits, content::ChunkContent, gathered::Gathered};
use crate::{Json, Ran, ToolError, ToolOutcome, Verdict, code, internal::lock};
use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

/// The sending half of a channel of chunks, as a call carries it. A clone is a reference count.
///
/// Tools write through [`ToolCall::chunk_sink`](crate::ToolCall::chunk_sink). Layers ask it how far the
/// answer has come.
#[derive(Clone)]
pub struct Chunks {
    state: Arc<Mutex<State>>,
    watches: bool,
}

/// The receiving half: chunks in the order in which the tool sent them.
///
/// If it is dropped, the tool no longer waits, and its chunks only become the content of the outcome.
pub struct ChunkReceiver(Arc<Mutex<State>>);

/// The answer so far is longer than what is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Makes a channel.
#[must_use]
pub fn channel(limits: ChunkLimits) -> (Chunks, ChunkReceiver) {
    let state = Arc::new(Mutex::new(State::new(limits, Consumer::Present)));
    (Chunks { state: state.clone(), watches: false }, ChunkReceiver(state))
}

#[derive(Debug, Default)]
struct State {
    limits: ChunkLimits,
    queue: VecDeque<Json>,
    queued_bytes: usize,
    gathered: Gathered,
    sent: u64,
    signs: u64,
    /// The first attempt that may still send.
    attempt: u32,
    is_closed: bool,
    consumer: Consumer,
    /// The consumer waits for the next chunk.
    is_awaited: bool,
    receiver: Option<Waker>,
    senders: Vec<Waker>,
    /// Those who wait for a sign of life.
    watchers: Vec<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Consumer {
    /// The caller takes no chunks.
    #[default]
    None,
    Present,
    Dropped,
}

impl State {
    fn new(limits: ChunkLimits, consumer: Consumer) -> Self {
        let gathered = Gathered::new(limits.kept_bytes);
        Self { limits, gathered, consumer, ..Self::default() }
    }

    const fn refuses(&self, attempt: u32) -> bool {
        self.is_closed || attempt < self.attempt
    }

    fn has_room(&self) -> bool {
        let ChunkLimits { buffered, buffered_bytes, .. } = self.limits;
        let is_full = self.queue.len() >= buffered || self.queued_bytes >= buffered_bytes;
        self.consumer != Consumer::Present || self.queue.is_empty() || !is_full
    }

    fn pop(&mut self) -> Option<Json> {
        let chunk = self.queue.pop_front()?;
        self.queued_bytes -= chunk.get().len();
        self.is_awaited = false;
        Some(chunk)
    }

    /// Counts a sign of life.
    fn sign(&mut self) -> Vec<Waker> {
        self.signs += 1;
        mem::take(&mut self.watchers)
    }

    /// The tasks that should look again: those that wait to send, and at the end the consumer.
    fn wakers(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        if self.has_room() || self.is_closed {
            wakers = mem::take(&mut self.senders);
        }
        if self.is_closed {
            wakers.extend(self.receiver.take());
        }
        wakers
    }
}

/// Remembers to wake this task, once.
fn register(wakers: &mut Vec<Waker>, cx: &Context<'_>) {
    if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
        wakers.push(cx.waker().clone());
    }
}

/// Changes the state, then wakes the tasks that wait for such a change.
fn change<T>(state: &Mutex<State>, change: impl FnOnce(&mut State) -> T) -> T {
    let mut state = lock(state);
    let result = change(&mut state);
    let wakers = state.wakers();
    drop(state);
    wakers.into_iter().for_each(Waker::wake);
    result
}

impl Chunks {
    /// For a call whose caller takes no chunks.
    pub(crate) fn gathering() -> Self {
        let state = State::new(ChunkLimits::default(), Consumer::None);
        Self { state: Arc::new(Mutex::new(state)), watches: false }
    }

    /// A handle that only reads, for whatever stands beside the call.
    #[must_use]
    pub fn watching(&self) -> Self {
        Self { state: self.state.clone(), watches: true }
    }

    /// Whether this handle only reads.
    #[must_use]
    pub const fn only_watches(&self) -> bool {
        self.watches
    }

    /// How many chunks the tool has sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        lock(&self.state).sent
    }

    /// Counts the signs of life: chunks, and the times at which the consumer began to wait for one. Ready if
    /// there were others than `seen`; if not, the next one wakes this task.
    pub fn poll_signs(&self, seen: u64, cx: &mut Context<'_>) -> Poll<u64> {
        let mut state = lock(&self.state);
        if state.signs != seen {
            return Poll::Ready(state.signs);
        }
        register(&mut state.watchers, cx);
        Poll::Pending
    }

    /// Forgets the tasks that wait for a sign of life: those that still do are woken, and ask again.
    pub fn forget_watchers(&self) {
        let watchers = mem::take(&mut lock(&self.state).watchers);
        watchers.into_iter().for_each(Waker::wake);
    }

    /// Whether the next chunk is the tool's to send: the consumer waits for it, or there is none. While the
    /// consumer is busy with earlier chunks, a silent tool is not idle.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        let state = lock(&self.state);
        state.is_awaited || state.consumer != Consumer::Present
    }

    /// The answer so far, in the form that the whole one would have. `None` if nothing was sent, or if the
    /// outcome has it; `Some(Err(_))` if it is longer than what is kept.
    #[must_use]
    pub fn so_far(&self) -> Option<Result<Json, TooLong>> {
        let mut gathered = lock(&self.state).gathered.clone();
        if gathered.is_over {
            return Some(Err(TooLong));
        }
        gathered.take(false).map(|(content, _)| Ok(content))
    }

    /// Ends what this attempt, from 0, and those before it may send: later chunks of theirs are refused.
    /// Returns whether a part of the answer was sent; then no other attempt may follow.
    #[must_use]
    pub fn end_attempt(&self, attempt: u32) -> bool {
        if self.watches {
            return self.sent() > 0;
        }
        let mut state = lock(&self.state);
        state.attempt = state.attempt.max(attempt.saturating_add(1));
        let (has_sent, senders) = (state.sent > 0, mem::take(&mut state.senders));
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        has_sent
    }

    /// Ends the stream with its outcome: [`ChunkSink::finish`](super::ChunkSink::finish), for a tool that did
    /// not call it itself.
    #[must_use]
    pub fn finish(&self, attempt: u32, outcome: ToolOutcome) -> ToolOutcome {
        if outcome.error().is_some() {
            return outcome;
        }
        if self.watches {
            return without_chunks(&lock(&self.state), outcome);
        }
        change(&self.state, |state| finish(state, attempt, outcome))
    }

    pub(super) fn limit_gathered(&self, most: usize) {
        let mut state = lock(&self.state);
        if state.consumer == Consumer::None {
            state.gathered.most = most;
        }
    }

    pub(super) fn has_consumer(&self) -> bool {
        lock(&self.state).consumer == Consumer::Present
    }

    /// Whether the attempt may send now; `None` if it never may again.
    pub(super) fn poll_room(&self, attempt: u32, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let mut state = lock(&self.state);
        if state.refuses(attempt) {
            return Poll::Ready(None);
        }
        if state.has_room() {
            return Poll::Ready(Some(()));
        }
        register(&mut state.senders, cx);
        Poll::Pending
    }

    /// Returns whether the chunk was taken.
    pub(super) fn push(&self, attempt: u32, chunk: ChunkContent) -> bool {
        let mut state = lock(&self.state);
        if state.refuses(attempt) {
            return false;
        }
        state.gathered.push(&chunk);
        state.sent += 1;
        let watchers = state.sign();
        if state.consumer == Consumer::Present {
            let chunk = chunk.json;
            state.queued_bytes += chunk.get().len();
            state.queue.push_back(chunk);
        }
        let receiver = state.receiver.take();
        drop(state);
        receiver.into_iter().chain(watchers).for_each(Waker::wake);
        true
    }
}

fn finish(state: &mut State, attempt: u32, mut outcome: ToolOutcome) -> ToolOutcome {
    if state.refuses(attempt) || state.sent == 0 {
        return without_chunks(state, outcome);
    }
    state.is_closed = true;
    let closing = outcome.content().cloned();
    if let Some(closing) = &closing {
        state.gathered.push(&ChunkContent::value(closing.clone()));
    }
    match state.gathered.take(closing.is_some()) {
        Some((content, pieces)) => {
            outcome.parts_mut().content = Some(content);
            outcome.set_pieces(pieces);
            outcome
        }
        None if state.consumer == Consumer::None => too_large(state.gathered.most),
        None => {
            outcome.set_not_kept();
            outcome
        }
    }
}

/// An outcome to which nothing is added: if its consumer got chunks that it does not have, a replay of it
/// would be another answer.
fn without_chunks(state: &State, mut outcome: ToolOutcome) -> ToolOutcome {
    if state.consumer != Consumer::None && state.sent > 0 && outcome.pieces().is_none() {
        outcome.set_not_kept();
    }
    outcome
}

/// The tool did its work, and its answer cannot be given.
fn too_large(most: usize) -> ToolOutcome {
    let message = format!(
        "The answer is longer than {most} bytes, and its caller takes no chunks: ask for less"
    );
    let mut error = ToolError::new(code::ANSWER_TOO_LARGE, message);
    (error.verdict, error.ran) = (Some(Verdict::Permanent), Ran::Yes);
    error.retryable = Some(false);
    ToolOutcome::failure(error)
}

impl ChunkReceiver {
    /// The next chunk; `None` once the stream has ended and all were taken. The call's outcome says how
    /// it ended, and is not part of the channel.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Json>> {
        let (chunk, watchers) = change(&self.0, |state| {
            if let Some(chunk) = state.pop() {
                return (Poll::Ready(Some(chunk)), Vec::new());
            }
            if state.is_closed {
                return (Poll::Ready(None), Vec::new());
            }
            match &mut state.receiver {
                Some(waker) => waker.clone_from(cx.waker()),
                None => state.receiver = Some(cx.waker().clone()),
            }
            let began = !mem::replace(&mut state.is_awaited, true);
            (Poll::Pending, if began { state.sign() } else { Vec::new() })
        });
        watchers.into_iter().for_each(Waker::wake);
        chunk
    }

    /// The next chunk, if one waits.
    #[must_use]
    pub fn try_next(&mut self) -> Option<Json> {
        change(&self.0, State::pop)
    }

    /// The call has ended: its tool's later chunks are refused, and those that wait can still be taken.
    #[doc(hidden)]
    pub fn end(&mut self) {
        change(&self.0, |state| state.is_closed = true);
    }
}

impl Drop for ChunkReceiver {
    fn drop(&mut self) {
        let (chunks, watchers) = change(&self.0, |state| {
            state.consumer = Consumer::Dropped;
            (state.queued_bytes, state.receiver) = (0, None);
            // The next chunk is the tool's to send, and its time begins now.
            (mem::take(&mut state.queue), state.sign())
        });
        drop(chunks);
        watchers.into_iter().for_each(Waker::wake);
    }
}

crate::debug_parts! { Chunks, |it| sent = it.sent() }
crate::debug_parts! { ChunkReceiver, |it| waiting = lock(&it.0).queue.len() }
