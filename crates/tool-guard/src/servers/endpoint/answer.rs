//! What tools of either kind answer.
use crate::engine::failure::Failure;
use tr_core::{BoxError, FailureInfo, Json, Ran, Verdict, chunks::ChunkSink};

/// The longest answer of a tool, in bytes.
pub(super) const MOST: usize = 16 << 20;

/// A text as content: what it says, if it is JSON, else the text itself; `None` of nothing.
pub(super) fn content(text: &str) -> Option<Json> {
    if text.trim().is_empty() {
        return None;
    }
    let json = Json::from_text(text.trim()).ok();
    Some(json.unwrap_or_else(|| serde_json::Value::from(text).into()))
}

/// The answer of a tool that `ran` is longer than the guard reads.
pub(super) fn too_long(ran: Ran) -> Failure {
    let facts = FailureInfo::new("answer_too_large", ran, Verdict::Permanent).by_layer();
    Failure::said(format!("the tool's answer is longer than {MOST} bytes"), facts)
}

/// Adds to an answer of a tool that `ran`.
///
/// # Errors
/// If the whole would be longer than [`MOST`].
pub(super) fn grow(all: &mut Vec<u8>, data: &[u8], ran: Ran) -> Result<(), Failure> {
    if all.len() + data.len() > MOST {
        return Err(too_long(ran));
    }
    all.extend_from_slice(data);
    Ok(())
}

/// The lines of an answer, which are its chunks.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl Lines {
    /// Sends the lines that are whole now.
    ///
    /// # Errors
    /// If a line is longer than [`MOST`], or the call takes no more chunks.
    pub(super) async fn send(&mut self, data: &[u8], to: &mut ChunkSink) -> Result<(), BoxError> {
        // The tool is cut off in its middle.
        grow(&mut self.begun, data, Ran::Unknown)?;
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            chunk(&line, to).await?;
        }
        Ok(())
    }

    /// Sends what is left.
    ///
    /// # Errors
    /// If the call takes no more chunks.
    pub(super) async fn end(self, to: &mut ChunkSink) -> Result<(), BoxError> {
        chunk(&self.begun, to).await
    }
}

async fn chunk(line: &[u8], to: &mut ChunkSink) -> Result<(), BoxError> {
    match content(&String::from_utf8_lossy(line)) {
        Some(chunk) => Ok(to.send(chunk).await?),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_json_or_itself() {
        for (text, wanted) in [
            (r#" {"a": 1} "#, Some(r#"{"a": 1}"#)),
            ("12\n", Some("12")),
            ("done", Some(r#""done""#)),
            (" \n", None),
        ] {
            assert_eq!(content(text).as_ref().map(Json::get), wanted, "{text}");
        }
    }
}
