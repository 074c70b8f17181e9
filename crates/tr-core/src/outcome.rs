//! The outcome of a tool call.
use crate::{
    BreakerState, Classification, Json, Ran, Replay, Retried, Verdict, shortened, shortened_code,
};
use serde::{Deserialize, Deserializer, Serialize};
use std::{sync::Arc, time::Duration};

mod pieces;
mod provenance;

pub use self::pieces::{Pieces, SplitContent};
use self::provenance::Provenance;

/// The outcome of a tool call: what the tool returned, and whether it was run or replayed.
///
/// A clone is a reference count; a recorded outcome is shared by all callers that get it.
// Four words, also as a `Poll<Result<_, BoxError>>`: every layer moves one.
#[derive(Clone, Debug, Default)]
pub struct ToolOutcome {
    /// `None`: a success that says nothing, at the first attempt.
    details: Option<Arc<Details>>,
    provenance: Provenance,
}

#[derive(Clone, Debug, Default)]
struct Details {
    parts: OutcomeParts,
    retried: Option<Arc<[Retried]>>,
    /// Of the content, if that was streamed.
    pieces: Option<Arc<Pieces>>,
}

/// What a tool said. Fields are added in minor versions.
///
/// Its serde form is that of records: all but the chunk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct OutcomeParts {
    /// What it gave back.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub content: Option<Json>,
    /// What it failed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Something it says beside its content.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The version of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<Box<str>>,
    /// The span of its execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<Box<str>>,
    /// Spans that it opened itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emitted_spans: Vec<Box<str>>,
    /// Which part of a stream this is.
    #[serde(skip)]
    pub chunk: Option<Chunk>,
    /// How long the tool took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// What layers told the model beside the tool's own words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Box<str>>,
}

/// A failure that a tool reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message} ({code})")]
#[non_exhaustive]
pub struct ToolError {
    /// A stable code.
    pub code: Box<str>,
    /// For the model.
    pub message: Box<str>,
    /// What the tool itself says of repeating: `Some(false)` beats everything but a manifest, and means that it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// How it was classified, once it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether the tool ran; `Unknown` until a layer knows.
    pub ran: Ran,
    /// More of it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
    /// The state of the breaker that refused the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerState>,
    /// A layer has retried this already.
    #[serde(default)]
    pub exhausted: bool,
}

/// Keeps a JSON `null`, which differs from an absent member.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

/// Which part of a stream an outcome is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// From 0.
    pub index: u64,
    /// Nothing follows.
    pub last: bool,
}

impl ToolError {
    /// A failure that is not classified yet. It counts as final unless its code and message speak of something
    /// transient; a [`refusal`](Self::refusal) is final whatever they say.
    #[must_use]
    pub fn new(code: impl Into<Box<str>>, message: impl Into<Box<str>>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            retryable: None,
            verdict: None,
            ran: Ran::Unknown,
            details: None,
            breaker: None,
            exhausted: false,
        }
    }

    /// A refusal: the tool has answered that it will not do this, and would answer the same again.
    ///
    /// It is not retried, no breaker counts it, and a record of the call replays it.
    ///
    /// ```
    /// use tr_core::{ToolError, ToolOutcome};
    ///
    /// let outcome = ToolOutcome::failure(ToolError::refusal("sold_out", "no seat is left in row 7"));
    /// # assert_eq!(outcome.error().unwrap().retryable, Some(false));
    /// ```
    #[must_use]
    pub fn refusal(code: impl Into<Box<str>>, message: impl Into<Box<str>>) -> Self {
        Self { retryable: Some(false), ran: Ran::Yes, ..Self::new(code, message) }
    }

    /// Sets how it was classified.
    #[must_use]
    pub fn classified(mut self, end: Classification<'_>) -> Self {
        self.verdict = Some(end.verdict);
        self.ran = end.ran;
        self.exhausted = end.exhausted;
        self
    }
}

impl ToolOutcome {
    /// A success with content.
    #[must_use]
    pub fn success(content: impl Into<Json>) -> Self {
        OutcomeParts { content: Some(content.into()), ..OutcomeParts::default() }.into()
    }

    /// A failure.
    #[must_use]
    pub fn failure(error: ToolError) -> Self {
        OutcomeParts { error: Some(error), ..OutcomeParts::default() }.into()
    }

    /// What the tool said.
    #[inline]
    #[must_use]
    pub fn parts(&self) -> &OutcomeParts {
        const NOTHING: &OutcomeParts = &OutcomeParts {
            content: None,
            error: None,
            metadata: None,
            tool_version: None,
            span_id: None,
            emitted_spans: Vec::new(),
            chunk: None,
            duration: None,
            notes: Vec::new(),
        };
        self.details.as_deref().map_or(NOTHING, |details| &details.parts)
    }

    /// Mutable access to the parts. Copies them if they are shared; the content stays shared.
    #[must_use]
    pub fn parts_mut(&mut self) -> &mut OutcomeParts {
        &mut self.details_mut().parts
    }

    fn details_mut(&mut self) -> &mut Details {
        Arc::make_mut(self.details.get_or_insert_default())
    }

    /// What the tool gave back.
    #[must_use]
    pub fn content(&self) -> Option<&Json> {
        self.parts().content.as_ref()
    }

    /// What it failed with.
    #[inline]
    #[must_use]
    pub fn error(&self) -> Option<&ToolError> {
        self.parts().error.as_ref()
    }

    /// Whether this is a replay, and of what.
    #[must_use]
    pub const fn replay(&self) -> Option<Replay> {
        self.provenance.replay()
    }

    /// Whether this came from a record and not from a run for this caller.
    #[must_use]
    pub const fn from_cache(&self) -> bool {
        self.provenance.is_replay()
    }

    /// Marks it as a replay.
    #[must_use]
    pub const fn replayed(mut self, replay: Replay) -> Self {
        self.provenance = self.provenance.replayed(replay);
        self
    }

    /// Each retry before this outcome.
    #[must_use]
    pub fn retried(&self) -> &[Retried] {
        self.details.as_deref().and_then(|details| details.retried.as_deref()).unwrap_or_default()
    }

    /// Notes the retries before this outcome.
    pub fn set_retried(&mut self, retried: impl Into<Arc<[Retried]>>) {
        self.details_mut().retried = Some(retried.into());
    }

    /// Where the chunks are in the content, if it was streamed.
    #[must_use]
    pub fn pieces(&self) -> Option<&Pieces> {
        self.details.as_deref()?.pieces.as_deref()
    }

    /// Says that the content was streamed in these pieces.
    pub fn set_pieces(&mut self, pieces: Pieces) {
        self.details_mut().pieces = Some(Arc::new(pieces));
    }

    /// The content in the chunks in which it was streamed; `None` if it was not.
    #[must_use]
    pub fn split_content(&self) -> Option<SplitContent> {
        let details = self.details.as_deref()?;
        SplitContent::new(details.parts.content.clone()?, details.pieces.clone()?)
    }

    /// Takes the content, and makes this outcome the chunk with this index, after which nothing follows.
    #[must_use]
    pub fn into_last_chunk(mut self, index: u64, content: Option<Json>) -> Self {
        let details = self.details_mut();
        details.pieces = None;
        details.parts.content = content;
        details.parts.chunk = Some(Chunk { index, last: true });
        self
    }

    /// Whether the outcome of a call with a key was recorded; `false` means that a repeat may
    /// find nothing.
    #[must_use]
    pub const fn recorded(&self) -> bool {
        !self.provenance.unrecorded
    }

    /// Whether its content was searched for an envelope, and taken out of it if it was one.
    #[must_use]
    pub const fn is_unwrapped(&self) -> bool {
        self.provenance.searched
    }

    /// Notes that its content is not to be searched for an envelope again.
    #[inline]
    pub const fn set_unwrapped(&mut self) {
        self.provenance.searched = true;
    }

    /// The bytes of the texts that it holds.
    pub(crate) fn size(&self) -> usize {
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.get().len());
        let OutcomeParts { content, error, metadata, notes, .. } = self.parts();
        let error = error
            .as_ref()
            .map_or(0, |error| error.code.len() + error.message.len() + json(&error.details));
        let notes: usize = notes.iter().map(|note| note.len()).sum();
        let pieces = self.pieces().map_or(0, Pieces::size);
        json(content) + json(metadata) + error + notes + pieces
    }

    /// The same failure with the beginning of its message only, marked as such; `None` of a success.
    pub(crate) fn shortened(&self) -> Option<Self> {
        let error = self.error()?;
        let message = shortened(&error.message, self.size());
        let mut short = ToolError::new(shortened_code(&error.code), message);
        (short.verdict, short.retryable) = (error.verdict, error.retryable);
        (short.ran, short.exhausted, short.breaker) = (error.ran, error.exhausted, error.breaker);
        let mut outcome = Self::failure(short);
        outcome.parts_mut().duration = self.parts().duration;
        if !self.retried().is_empty() {
            outcome.set_retried(self.retried());
        }
        Some(outcome)
    }

    /// That the tool succeeded with an answer that no record can keep, such as one that only its
    /// caller can read. A repeat of the call gets an error that says that it ran.
    #[must_use]
    pub fn not_kept() -> Self {
        let mut outcome = Self::default();
        outcome.provenance.unkept = true;
        outcome
    }

    /// Notes that no record can keep the outcome: a repeat of the call gets an error that says that it ran.
    pub const fn set_not_kept(&mut self) {
        self.provenance.unkept = true;
    }

    /// Whether it is the answer of a tool that succeeded, and was not kept.
    #[must_use]
    pub fn is_unkept(&self) -> bool {
        self.provenance.unkept && self.error().is_none() && self.parts().chunk.is_none()
    }

    /// Whether records may keep it: neither a part of a stream nor [`not_kept`](Self::not_kept).
    #[inline]
    #[must_use]
    pub fn can_be_kept(&self) -> bool {
        !self.provenance.unkept && self.parts().chunk.is_none()
    }

    /// Notes that the outcome could not be recorded.
    pub const fn set_unrecorded(&mut self) {
        self.provenance.unrecorded = true;
    }
}

impl From<OutcomeParts> for ToolOutcome {
    fn from(parts: OutcomeParts) -> Self {
        Self {
            details: Some(Arc::new(Details { parts, retried: None, pieces: None })),
            provenance: Provenance::default(),
        }
    }
}

impl From<ToolError> for ToolOutcome {
    fn from(error: ToolError) -> Self {
        OutcomeParts { error: Some(error), ..OutcomeParts::default() }.into()
    }
}
