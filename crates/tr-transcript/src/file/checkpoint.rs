//! Rollback and reset of a session file.
use super::{
    drafts,
    entry::What,
    form::FileForm,
    new_line,
    path::{self, Path},
    session_file::SessionFile,
};
use crate::{message::Message, validate::Validator};
use serde::Serialize;

/// A point of a session file to which it can be rolled back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileCheckpoint {
    /// `N-HASH`: how many records stand before it, and the beginning of their hash.
    pub id: Box<str>,
    /// How many messages the model would be sent.
    #[serde(rename = "messageIndex")]
    pub messages: usize,
    /// The line of the last record before it; 0 if there is none.
    pub line: u64,
    /// How many bytes of the file stand before it.
    pub length: u64,
    /// How many records stand before it.
    #[serde(skip)]
    pub records: usize,
}

/// A checkpoint of a transcript or a file that cannot be used. The session is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// There is no checkpoint with this id.
    #[error("Checkpoint not found: {0}")]
    NotFound(Box<str>),
    /// The messages before the checkpoint have changed.
    #[error("Checkpoint integrity mismatch — messages were modified")]
    Mismatch,
}

/// How many characters of the hash an id has.
const ID_HASH: usize = 12;

impl SessionFile {
    /// The end of the file as a checkpoint, for use after more is appended; it may follow invalid
    /// content.
    #[must_use]
    pub fn end(&self) -> FileCheckpoint {
        let messages = self.transcript().map_or(0, |transcript| transcript.len());
        let (records, hashes) = (self.entries.len(), self.hashes());
        self.checkpoint(records, messages, &hashes[records])
    }

    /// The points at which the messages are valid and no call waits for its result, newest first:
    /// the end, and where turns begin. Computed lazily; each costs as much as a check.
    pub fn checkpoints(&self) -> impl Iterator<Item = FileCheckpoint> {
        let hashes = self.hashes();
        let ends = (0..=self.entries.len()).rev();
        ends.filter_map(move |records| {
            let messages = self.messages_at(records)?;
            Some(self.checkpoint(records, messages, &hashes[records]))
        })
    }

    /// Removes what follows a checkpoint, other branches included.
    ///
    /// # Errors
    /// If there is no such checkpoint, or the records before it have changed. Then nothing is
    /// removed.
    pub fn rollback(&mut self, id: &str) -> Result<(), CheckpointError> {
        let unknown = || CheckpointError::NotFound(id.into());
        let (records, hash) = id.split_once('-').ok_or_else(unknown)?;
        let records: usize = records.parse().map_err(|_| unknown())?;
        let hashes = self.hashes();
        let now = hashes.get(records).ok_or_else(unknown)?;
        if hash.len() < ID_HASH || !now.starts_with(hash) {
            return Err(CheckpointError::Mismatch);
        }
        *self = Self::read(&self.bytes[..self.end_of(records)]);
        Ok(())
    }

    /// Resets the session: the header and the system's prompt stay. Claude Code keeps neither in
    /// its file: there, one line stays, and Claude Code sends the model nothing from before it.
    pub fn reset(&mut self) {
        let mut bytes = Vec::new();
        for (record, located) in self.entries.iter().enumerate() {
            let is_prompt = located.entry.as_message().is_some_and(Message::is_system_prompt);
            if is_prompt || matches!(located.entry.what, What::Header { .. }) {
                bytes.extend_from_slice(&self.bytes[self.spans[record].at.clone()]);
                bytes.push(b'\n');
            }
        }
        if bytes.is_empty() && self.form() == FileForm::ClaudeCode {
            bytes.extend(new_line::boundary(self).map(String::into_bytes).unwrap_or_default());
        }
        *self = Self::read(bytes);
    }

    fn checkpoint(&self, records: usize, messages: usize, hash: &str) -> FileCheckpoint {
        let line = records.checked_sub(1).map_or(0, |last| self.entries[last].place.line);
        FileCheckpoint {
            id: format!("{records}-{}", &hash[..ID_HASH]).into(),
            records,
            length: self.end_of(records) as u64,
            line,
            messages,
        }
    }

    /// How many messages the model would be sent if only this many records were left; `None` if the
    /// session cannot be rolled back there.
    fn messages_at(&self, records: usize) -> Option<usize> {
        let next = self.entries.get(records).map(|located| located.entry.as_message());
        if next.is_some_and(|next| !next.is_some_and(Message::is_without_results)) {
            return None;
        }
        let entries = &self.entries[..records];
        let path = Path::active(self.form(), entries, false, path::is_linked(entries));
        let mut validator = Validator::new(self.form().messages()?);
        for draft in drafts::drafts(self.form(), entries, &path) {
            validator.push(&draft.to_skeleton(entries));
        }
        let is_whole = validator.findings().is_empty() && path.phantoms.is_empty();
        (is_whole && validator.pending().next().is_none()).then(|| validator.len())
    }

    /// Where the line of the last of these records ends.
    fn end_of(&self, records: usize) -> usize {
        let Some(last) = records.checked_sub(1) else {
            let Some(span) = self.spans.first() else { return self.bytes.len() };
            return memchr::memrchr(b'\n', &self.bytes[..span.at.start]).map_or(0, |end| end + 1);
        };
        let end = self.spans[last].at.end;
        let next = self.spans.get(records).map_or(self.bytes.len(), |span| span.at.start);
        let line_end = self.bytes[end..next].iter().position(|&byte| byte == b'\n');
        line_end.map_or(end, |at| end + at + 1)
    }

    /// The hash for each number of records, from none on.
    fn hashes(&self) -> Vec<String> {
        let mut hash = blake3::Hash::from_bytes([0; 32]);
        let mut hashes = vec![hash.to_hex().to_string()];
        for span in &self.spans {
            let mut hasher = blake3::Hasher::new();
            hasher.update(hash.as_bytes());
            hasher.update(&self.bytes[span.at.clone()]);
            hash = hasher.finalize();
            hashes.push(hash.to_hex().to_string());
        }
        hashes
    }
}
