//! What one chunk holds.
use crate::Json;

/// What one chunk holds: a piece of a text, or a JSON value of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkContent {
    pub(super) json: Json,
    pub(super) is_text: bool,
}

impl ChunkContent {
    /// A piece of a text. If all chunks of an answer are, the whole answer is the joined text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { json: Json::from_value(text).expect("a text is JSON"), is_text: true }
    }

    /// A value of its own. If one chunk of an answer is, the whole answer is the list of all.
    #[must_use]
    pub fn value(json: impl Into<Json>) -> Self {
        Self { json: json.into(), is_text: false }
    }

    /// As JSON.
    #[must_use]
    pub const fn json(&self) -> &Json {
        &self.json
    }
}

impl From<&str> for ChunkContent {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ChunkContent {
    fn from(text: String) -> Self {
        Self::text(&text)
    }
}

impl From<Json> for ChunkContent {
    fn from(json: Json) -> Self {
        Self::value(json)
    }
}

impl From<serde_json::Value> for ChunkContent {
    fn from(value: serde_json::Value) -> Self {
        Self::value(value)
    }
}
