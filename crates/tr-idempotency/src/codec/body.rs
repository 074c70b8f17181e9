//! The body of a record: what is kept of a call in a store.
//!
//! The payload: the length of the head (4 bytes), the head (JSON), the bytes of the response.
use super::{Found, Frames, Place, Unreadable, bounded::Bounded, persist::Persist};
use crate::{
    end::{Failure, RUNS, Run, Settlement, State},
    failure::RecordedFailure,
    protocol::{self, Millis, Token},
    store::{ClaimRequest, End, StoredRecord, StoredState},
};
use serde::{Deserialize, Serialize};
use std::{io::Write, sync::Arc};
use tr_core::{BoxError, canonical::Key};

/// How responses become bytes, and their largest size.
#[derive(Debug)]
pub(crate) struct Format<V> {
    write_to: fn(&V, &mut dyn Write) -> Result<(), BoxError>,
    from_bytes: fn(&[u8]) -> Result<V, BoxError>,
    pub(crate) most_bytes: usize,
    pub(crate) frames: Frames,
}

/// The earlier runs, the failure of the last one, and who settled that.
type History = (Vec<Run>, Option<Arc<RecordedFailure>>, Option<Box<Settlement>>);

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Head {
    #[serde(rename = "flaw", skip_serializing_if = "Option::is_none")]
    failure: Option<Arc<RecordedFailure>>,
    /// A response follows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    answer: bool,
    /// The marker of a response that was too large to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    oversized: Option<Oversized>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<Run>,
    /// By an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled: Option<Box<Settlement>>,
}

/// The marker of a response that was too large to be kept.
#[derive(Serialize, Deserialize)]
struct Oversized {
    bytes: usize,
    digest: String,
}

impl Place {
    /// The place of a claim's end.
    pub(crate) const fn of_claim(claim: &ClaimRequest, token: Token) -> Self {
        let (key, digest, mutating) = (claim.key, claim.digest, claim.mutating);
        Self { key, digest, mutating, epoch: token.epoch, by_hand: false }
    }
}

impl<V: Persist> Format<V> {
    pub(crate) fn new(most_bytes: usize, frames: Frames) -> Self {
        Self { write_to: V::write_to, from_bytes: V::from_bytes, most_bytes, frames }
    }
}

impl<V> Format<V> {
    /// Writes a state with its time to live, without its response if that is too large; and whether a duplicate
    /// will get the whole response.
    pub(crate) fn write(
        &self,
        place: &Place,
        state: &State<V>,
        ttl: Millis,
        earlier: &[Run],
        settled: Option<Box<Settlement>>,
    ) -> (End, bool) {
        let end = place.end(state.phase(), ttl);
        let wrap =
            |head: &Head, answer: &[u8]| self.frames.wrap(&place.key, &end, join(head, answer));
        let earlier = earlier[earlier.len().saturating_sub(RUNS)..].to_vec();
        let is_settled = settled.is_some();
        let mut head = Head { earlier, settled, ..Head::default() };
        let mut whole = true;
        let mut answer = |value: &Option<V>, head: &mut Head| {
            let Some(value) = value else { return Vec::new() };
            let mut bytes = Bounded::new(self.most_bytes);
            let written = (self.write_to)(value, &mut bytes);
            match (written, bytes.finish()) {
                (Ok(()), Ok(bytes)) => {
                    head.answer = true;
                    return bytes;
                }
                (Ok(()), Err((bytes, digest))) => {
                    head.oversized = Some(Oversized { bytes, digest: digest.to_string() });
                }
                (Err(_), _) => {}
            }
            whole = false;
            Vec::new()
        };
        let mut failure = |failure: &Failure<V>| {
            head.failure = Some(failure.recorded.clone());
            let mut bytes = answer(&failure.response, &mut head);
            let is_large = head.oversized.is_some() || failure.recorded.size() > self.most_bytes;
            if let Some(brief) = failure.brief.as_deref().filter(|_| is_large) {
                head.failure = Some(brief.recorded.clone());
                let marker = head.oversized.take();
                bytes = answer(&brief.response, &mut head);
                head.oversized = marker;
            }
            wrap(&head, &bytes)
        };
        let state = match state {
            State::Inflight => StoredState::Inflight,
            State::Done(value) => {
                let bytes = answer(value, &mut head);
                StoredState::Done(wrap(&head, &bytes))
            }
            State::Failed(it, again) => StoredState::Failed(failure(it), *again),
            // Also a state without content is sealed, so that it cannot be forged.
            State::Cancelled(None) if self.frames.is_sealed() || is_settled => {
                StoredState::Cancelled(Some(wrap(&head, &[])))
            }
            State::Cancelled(it) => StoredState::Cancelled(it.as_ref().map(failure)),
            State::Unknown(it) => StoredState::Unknown(it.as_ref().map(failure)),
        };
        (End { state, ttl }, whole)
    }

    /// Reads a state that [`write`](Self::write) has written.
    pub(crate) fn read(&self, key: &Key, record: &StoredRecord) -> Result<State<V>, Unreadable> {
        let Some(body) = record.state.body() else {
            return Ok(match record.state {
                StoredState::Inflight => State::Inflight,
                StoredState::Cancelled(_) => State::Cancelled(None),
                _ => State::Unknown(None),
            });
        };
        let payload = self.frames.unwrap(&Found::body(key, record), body)?;
        let (head, answer) = split(&payload)?;
        let answer = if head.answer {
            let foreign = |error: BoxError| Unreadable::Foreign(error.to_string());
            Some((self.from_bytes)(answer).map_err(foreign)?)
        } else {
            None
        };
        let failed = |answer| {
            let recorded = head.failure.clone().ok_or(Unreadable::Corrupt("it has no failure"))?;
            Ok(Failure::new(recorded, answer, None))
        };
        Ok(match record.state {
            protocol::State::Inflight => State::Inflight,
            protocol::State::Done(_) => State::Done(answer),
            protocol::State::Failed(_, again) => State::Failed(failed(answer)?, again),
            protocol::State::Cancelled(_) if head.failure.is_none() => State::Cancelled(None),
            protocol::State::Cancelled(_) => State::Cancelled(Some(failed(answer)?)),
            protocol::State::Unknown(_) => State::Unknown(Some(failed(answer)?)),
        })
    }

    /// Whether the record's state, which lets the call run again, is trusted: in a sealed store it
    /// has to be sealed.
    pub(crate) fn allows_again(
        &self,
        found: &Found<'_>,
        state: &StoredState,
    ) -> Result<(), Unreadable> {
        match state {
            StoredState::Failed(..) | StoredState::Cancelled(_) => self.frames.prove(found),
            // The record has expired.
            _ => Ok(()),
        }
    }

    /// The runs of a record without its response, the failure of the last one, and who settled that: for
    /// operators.
    pub(crate) fn history(&self, found: &Found<'_>) -> Result<History, Unreadable> {
        let Some(body) = found.body else { return Ok(History::default()) };
        let payload = self.frames.unwrap(found, body)?;
        let (head, _) = split(&payload)?;
        Ok((head.earlier, head.failure, head.settled))
    }
}

/// The payload of this head and the bytes of the response.
fn join(head: &Head, answer: &[u8]) -> Vec<u8> {
    let head = serde_json::to_vec(head).expect("texts and numbers are JSON");
    let length = u32::try_from(head.len()).expect("heads are bounded");
    [&length.to_le_bytes(), &*head, answer].concat()
}

/// The head, and the bytes of the response.
fn split(payload: &[u8]) -> Result<(Head, &[u8]), Unreadable> {
    let cut = || Unreadable::Corrupt("its head is truncated");
    let (length, rest) = payload.split_first_chunk::<4>().ok_or_else(cut)?;
    let (head, answer) =
        rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
    let head =
        serde_json::from_slice(head).map_err(|error| Unreadable::Foreign(error.to_string()))?;
    Ok((head, answer))
}

#[cfg(test)]
mod tests;
