//! Plans the repair of a file that may be large by repairing only its damaged parts, and applies it.
use super::{
    done::FilePlan,
    form::FileForm,
    index::Index,
    part::{self, Parts, Repaired},
    session_file::SessionFile,
};
use crate::repair::{Repair, StalePlan};

/// Plans the repair of a session file that is in memory. In a large file, only the damaged parts
/// are parsed for repair.
///
/// # Memory
///
/// About the file's size once more, the new file included, if it can be cut near the damage: before
/// a turn or a step that shares no id or link with what precedes it. Otherwise about eight times
/// the file's size.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct FilePlanner {
    repair: Repair,
    whole_up_to: usize,
}

impl FilePlanner {
    /// Plans this repair.
    pub const fn new(repair: Repair) -> Self {
        Self { repair, whole_up_to: 1 << 20 }
    }

    /// Files of up to this many bytes are planned as a whole; 1 MiB by default. Larger ones get the
    /// same plan, except for the order of its actions, and for the message indexes in mode
    /// `remove`, which are counted for each part separately.
    pub const fn whole_up_to(mut self, bytes: usize) -> Self {
        self.whole_up_to = bytes;
        self
    }

    /// Plans the repair of a file. Calls `progress` with the bytes processed so far, out of twice the
    /// file's length.
    pub fn plan(&self, bytes: &[u8], mut progress: impl FnMut(u64)) -> FilePlan {
        let before = blake3::hash(bytes);
        let parts =
            if bytes.len() > self.whole_up_to { self.parts(bytes, &mut progress) } else { None };
        let (after, mut done) = match parts {
            Some(parts) => joined(bytes, parts),
            None => {
                let (after, done) = SessionFile::read(bytes).repaired(self.repair, None);
                (after.bytes.into_vec(), done)
            }
        };
        done.look_for_names(bytes);
        (done.before, done.after) = (Some(before), (!done.is_empty()).then_some(after));
        progress(2 * bytes.len() as u64);
        done
    }

    /// The repaired parts; `None` if the file must be planned as a whole.
    fn parts(&self, bytes: &[u8], progress: &mut impl FnMut(u64)) -> Option<Vec<Repaired>> {
        let form = FileForm::of(bytes);
        if self.repair.waive_thoughts || !part::may_cut(form) {
            return None;
        }
        let index = Index::read(form, bytes, &mut *progress)?;
        let (at_once, members) = (self.whole_up_to, self.repair.members);
        let parts = Parts::find(form, bytes, index, at_once, members, progress)?;
        let end = parts.cuts.len();
        let tail = self.repair.close_tail.then_some(end);
        // With an undamaged stretch on each side: what is inserted at an edge changes lines beyond it.
        let around = |stretch: usize| (stretch.saturating_sub(1), (stretch + 1).min(end));
        // The first of them last.
        let damaged = parts.damaged.iter().copied().chain(tail).rev();
        let mut open: Vec<(usize, usize)> = damaged.map(around).collect();
        let mut done: Vec<((usize, usize), Repaired)> = Vec::new();
        while let Some((first, last)) = open.pop() {
            // A part that was widened absorbs its neighbors.
            if let Some(((from, _), _)) = done.pop_if(|((_, end), _)| first <= *end) {
                open.push((first.min(from), last));
            } else if let Some((_, end)) = open.pop_if(|(from, _)| *from <= last) {
                open.push((first, last.max(end)));
            } else if (first, last) == (0, end) {
                return None;
            } else if let Some(repaired) = parts.repair(first, last, self.repair) {
                done.push(((first, last), repaired));
            } else {
                let wider = last - first + 1;
                open.push((first.saturating_sub(wider), (last + wider).min(end)));
            }
        }
        Some(done.into_iter().map(|(_, repaired)| repaired).collect())
    }
}

impl SessionFile {
    /// Plans a repair of the messages that the model would be sent, of links, and of bytes that are
    /// no record. Does not change the file. Deterministic and idempotent. Plans nothing if the place
    /// of a line is not certain: see [`FilePlan::unsure_place`].
    pub fn plan(&self, repair: Repair) -> FilePlan {
        FilePlanner::new(repair).plan(&self.bytes, |_| {})
    }

    /// Applies the plan.
    ///
    /// # Errors
    /// If the file has changed since it was planned; it is then left unchanged.
    pub fn apply(&mut self, plan: FilePlan) -> Result<(), StalePlan> {
        if Some(blake3::hash(&self.bytes)) != plan.before {
            return Err(StalePlan(()));
        }
        if let Some(after) = plan.after {
            *self = Self::read(after);
        }
        Ok(())
    }
}

/// The file with its repaired parts, and the actions.
fn joined(bytes: &[u8], parts: Vec<Repaired>) -> (Vec<u8>, FilePlan) {
    let mut done = FilePlan::default();
    let more = |part: &Repaired| part.bytes.len().saturating_sub(part.at.len());
    let more: usize = parts.iter().map(more).sum();
    if parts.is_empty() {
        return (Vec::new(), done);
    }
    let mut after = Vec::with_capacity(bytes.len() + more);
    let mut from = 0;
    for Repaired { at, bytes: part, done: more } in parts {
        after.extend_from_slice(&bytes[from..at.start]);
        after.extend_from_slice(&part);
        from = at.end;
        done.extend(more);
    }
    after.extend_from_slice(&bytes[from..]);
    (after, done)
}
