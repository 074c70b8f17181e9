//! The events of a stream that a client may have missed: no I/O.
use bytes::Bytes;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// How many bytes of events are kept for a stream.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
/// How long a client that lost its stream may resume it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The last events of a stream. Their ids name the stream, and count from 1.
#[derive(Debug)]
pub(super) struct Replay {
    stream: u64,
    events: VecDeque<Event>,
    bytes: usize,
    pub(super) last: u64,
    pub(super) ended: bool,
}

#[derive(Debug)]
struct Event {
    bytes: Bytes,
    at: Instant,
}

/// What follows an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Event(Bytes),
    /// Nothing yet.
    Nothing,
    /// Nothing ever: the stream has ended.
    End,
    /// It is no longer kept.
    Lost,
}

/// The id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

impl EventId {
    /// Reads the text of an id.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, number: number.parse().ok()? })
    }
}

impl Replay {
    pub(super) const fn new(stream: u64) -> Self {
        Self { stream, events: VecDeque::new(), bytes: 0, last: 0, ended: false }
    }

    /// Adds an event, which gets an id. `read` is the last event that the client got, if it reads now: those after
    /// it are kept, however long they are.
    pub(super) fn push(&mut self, event: &[u8], read: Option<u64>, now: Instant) {
        self.last += 1;
        let id = format!("id: {}-{}\n", self.stream, self.last);
        let bytes = Bytes::from([id.as_bytes(), event].concat());
        self.bytes += bytes.len();
        self.events.push_back(Event { bytes, at: now });
        self.trim(read, now);
    }

    /// Forgets old events.
    pub(super) fn trim(&mut self, read: Option<u64>, now: Instant) {
        while let Some(first) = self.events.front()
            && (self.bytes > MAX_BYTES || now.duration_since(first.at) > PATIENCE)
            && read.is_none_or(|read| self.first() <= read)
        {
            self.bytes -= first.bytes.len();
            self.events.pop_front();
        }
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
    }

    /// The number of the first event that is kept.
    fn first(&self) -> u64 {
        self.last + 1 - self.events.len() as u64
    }

    /// What follows the event with this number.
    pub(super) fn after(&self, number: u64) -> Next {
        if number > self.last || number + 1 < self.first() {
            return Next::Lost;
        }
        match self.events.get((number + 1 - self.first()) as usize) {
            Some(event) => Next::Event(event.bytes.clone()),
            None if self.ended => Next::End,
            None => Next::Nothing,
        }
    }

    /// How many bytes follow the event with this number.
    pub(super) fn unread(&self, number: u64) -> usize {
        let skipped = (number + 1).saturating_sub(self.first()) as usize;
        self.events.iter().skip(skipped).map(|event| event.bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests;
