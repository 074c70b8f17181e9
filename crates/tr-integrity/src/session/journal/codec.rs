//! Changes as bytes, with a version and a checksum.
use super::Change;
use crate::store::Revision;
use serde::{Deserialize, Serialize};

/// The header of the bytes: the version, the checksum in hexadecimal, and a line break.
const VERSION: &str = "trs1 ";
const SUM: usize = 64;

/// Why bytes cannot be decoded: they are damaged; or intact, and a newer version wrote them.
const DAMAGED: &str = "it is damaged: the checksum is another";
const NEWER: &str = "a newer version wrote it";

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

/// Decodes what [`encode`] wrote, or says why that is impossible.
pub(crate) fn decode(
    session: &str,
    revision: Revision,
    body: &[u8],
) -> Result<Vec<Change>, String> {
    let Some(rest) = body.strip_prefix(VERSION.as_bytes()) else {
        let is_ours = body.starts_with(b"trs") && body.get(3).is_some_and(u8::is_ascii_digit);
        return Err(if is_ours { NEWER } else { DAMAGED }.into());
    };
    let (sum, json) = rest.split_at_checked(SUM).ok_or(DAMAGED)?;
    let json = json.strip_prefix(b"\n").ok_or(DAMAGED)?;
    if sum != checksum(session, revision, json).to_hex().as_bytes() {
        return Err(DAMAGED.into());
    }
    let read: Result<Body<Vec<Change>>, _> = serde_json::from_slice(json);
    // A change of a kind that this version does not know.
    Ok(read.map_err(|error| format!("{NEWER}: {error}"))?.changes)
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
