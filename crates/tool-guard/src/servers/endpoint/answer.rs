//! What tools of either kind answer.
use crate::engine::failure::Failure;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
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

/// Sends each line of an answer as a chunk.
///
/// # Errors
/// If the answer breaks off, a line is longer than [`MOST`], or the call takes no more chunks.
pub(super) async fn send_lines<E: Into<BoxError>>(
    mut answer: impl Stream<Item = Result<Bytes, E>> + Unpin,
    to: &mut ChunkSink,
) -> Result<(), BoxError> {
    let mut begun = Vec::new();
    while let Some(data) = answer.next().await {
        // The tool is cut off in its middle.
        grow(&mut begun, &data.map_err(Into::into)?, Ran::Unknown)?;
        while let Some(end) = begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = begun.drain(..=end).collect();
            chunk(&line, to).await?;
        }
    }
    chunk(&begun, to).await
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
