//! Changes as bytes, with a version and a checksum.
use super::Change;
use crate::store::Revision;
use serde::{Deserialize, Serialize};

/// The header of the bytes: the version, the checksum in hexadecimal, and a line break.
const VERSION: &str = "trs1 ";
const SUM: usize = 64;

/// Why bytes cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// They are damaged.
    #[error("it is damaged: the checksum is another")]
    Damaged,
    /// They are intact, but a newer version wrote them.
    #[error("a newer version wrote it")]
    Newer,
    /// The same, and a change is of a kind that this version does not know.
    #[error("a newer version wrote it: {0}")]
    NewerChange(serde_json::Error),
}

#[derive(Serialize, Deserialize)]
struct Body<C> {
    changes: C,
}

/// Encodes the body of the entry with this revision, in this session's log.
pub(crate) fn encode(session: &str, revision: Revision, changes: &[Change]) -> Vec<u8> {
    let mut body = Vec::with_capacity(1_024);
    body.extend_from_slice(VERSION.as_bytes());
    body.resize(VERSION.len() + SUM, b' ');
    body.push(b'\n');
    serde_json::to_writer(&mut body, &Body { changes }).expect("changes are JSON");
    let (head, json) = body.split_at_mut(VERSION.len() + SUM + 1);
    let sum = checksum(session, revision, json);
    head[VERSION.len()..VERSION.len() + SUM].copy_from_slice(sum.to_hex().as_bytes());
    body
}

/// Decodes what [`encode`] wrote.
pub(crate) fn decode(
    session: &str,
    revision: Revision,
    body: &[u8],
) -> Result<Vec<Change>, Unreadable> {
    let Some(rest) = body.strip_prefix(VERSION.as_bytes()) else {
        let is_ours = body.starts_with(b"trs") && body.get(3).is_some_and(u8::is_ascii_digit);
        return Err(if is_ours { Unreadable::Newer } else { Unreadable::Damaged });
    };
    let (sum, json) = rest.split_at_checked(SUM).ok_or(Unreadable::Damaged)?;
    let json = json.strip_prefix(b"\n").ok_or(Unreadable::Damaged)?;
    if sum != checksum(session, revision, json).to_hex().as_bytes() {
        return Err(Unreadable::Damaged);
    }
    let read: Body<Vec<Change>> = serde_json::from_slice(json).map_err(Unreadable::NewerChange)?;
    Ok(read.changes)
}

/// Covers the text and its position: an entry of another session or position is invalid.
fn checksum(session: &str, revision: Revision, json: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(session.len() as u64).to_le_bytes());
    hasher.update(session.as_bytes());
    hasher.update(&revision.number.to_le_bytes());
    hasher.update(&revision.stamp.to_le_bytes());
    hasher.update(json);
    hasher.finalize()
}
