//! Replays a session from its log.
use super::change::{Change, CycleUpdate, Line, NewCheckpoint, NewCycle, Snapshot};
use crate::session::{
    Archive, Checkpoint, CycleId, Session, ToolCycleTransaction,
    cycle::{RecordedCycle, UsePosition},
};
use crate::store::Revision;
use tr_transcript::{Format, Message, Transcript};

/// The limit for a session's counters, so that they cannot overflow.
const MOST: u64 = u64::MAX / 2;

impl Session {
    /// Replays these changes. The error says why one is invalid after those before it.
    pub(crate) fn replay(id: &str, changes: Vec<Change>) -> Result<Self, String> {
        let mut changes = changes.into_iter();
        let Some(Change::Opened { format, head, tail }) = changes.next() else {
            return Err("the log does not begin with the session's form".into());
        };
        let mut session = Self::load(id, Transcript::with_around(format, head, tail));
        changes.try_for_each(|change| session.again(change))?;
        session.check_places()?;
        Ok(session)
    }

    /// Validates all indexes, because a log may come from an untrusted writer.
    fn check_places(&self) -> Result<(), String> {
        let len = self.transcript.len();
        let cycles = self.cycles.iter().filter_map(|cycle| cycle.used.at());
        let mut uses = cycles.chain(self.done.iter().filter_map(|done| done.used));
        if uses.any(|at| at >= len) {
            return Err("a cycle's use is behind the last message".into());
        }
        if self.checkpoints_made.max(self.cycles_begun) > MOST {
            return Err("more is counted than can have been".into());
        }
        Ok(())
    }

    /// Applies one change.
    fn again(&mut self, change: Change) -> Result<(), String> {
        match change {
            Change::Opened { .. } => return Err("the session's form is there twice".into()),
            Change::Message(line) => self.append_as_is(line.read(self.transcript.format())?),
            Change::Cut(len) if len <= self.transcript.len() => self.cut(len),
            Change::Cut(_) => return Err("more messages are kept than there are".into()),
            Change::Checkpoint(made) => self.made(*made)?,
            Change::Committed(numbers) => {
                for number in numbers {
                    let at = self.checkpoint_at(number)?;
                    self.checkpoints[at].is_committed = true;
                }
            }
            Change::Pruned(numbers) => {
                for number in numbers {
                    let at = self.checkpoint_at(number)?;
                    self.checkpoints.remove(at);
                }
            }
            Change::Cycle(begun) => self.begun(*begun)?,
            Change::Moved(update) => {
                let at = self.cycle_at(update.id)?;
                update.apply(&mut self.cycles[at]);
            }
            Change::Over(ids) => {
                for id in ids {
                    let at = self.cycle_at(id)?;
                    self.cycles.remove(at);
                }
            }
            Change::Done(done) => self.was_done(*done)?,
            Change::DoneWith(ids) => {
                for id in ids {
                    let at = self.done.binary_search_by_key(&id, |done| done.id);
                    self.done.remove(at.map_err(|_| "a cycle was not recorded")?);
                }
            }
            Change::Counted { checkpoints, cycles } => {
                (self.checkpoints_made, self.cycles_begun) = (checkpoints, cycles);
            }
            Change::Merged(entries) => {
                for (number, stamp) in entries {
                    self.holds_entry(Revision { number, stamp });
                }
            }
            Change::Incident(incident) => self.keep_incident(incident),
            Change::Archived { timestamp, messages } => {
                let messages = match messages {
                    Some(lines) => read(lines, self.transcript.format())?,
                    None => self.transcript.messages().to_vec(),
                };
                self.keep_archive(Archive { timestamp, messages });
            }
        }
        Ok(())
    }

    fn made(&mut self, made: NewCheckpoint) -> Result<(), String> {
        let last = self.checkpoints.last().map_or(0, |last| last.number);
        if made.number <= last {
            return Err("a checkpoint is there twice".into());
        }
        let snapshot = match made.snapshot {
            None => None,
            Some(Snapshot::Messages(lines)) => Some(read(lines, self.transcript.format())?),
            Some(Snapshot::Prefix) => {
                let prefix = self.transcript.messages().get(..made.message_index);
                Some(prefix.ok_or("a checkpoint has more messages than there are")?.to_vec())
            }
        };
        self.checkpoints_made = self.checkpoints_made.max(made.number);
        self.checkpoints.push(Checkpoint {
            id: Checkpoint::id_of(&self.id, made.number),
            session_id: self.id.clone(),
            timestamp: made.timestamp,
            message_index: made.message_index,
            content_hash: made.content_hash,
            operation: made.operation,
            snapshot,
            is_committed: made.committed,
            number: made.number,
        });
        Ok(())
    }

    fn begun(&mut self, begun: NewCycle) -> Result<(), String> {
        let NewCycle { checkpoint, tool_use, driver, moved } = begun;
        if self.cycle_at(moved.id).is_ok() {
            return Err("a cycle is there twice".into());
        }
        self.cycles_begun = self.cycles_begun.max(moved.id);
        let mut cycle = ToolCycleTransaction::new(CycleId(moved.id), checkpoint, tool_use, driver);
        moved.apply(&mut cycle);
        self.keep_cycle(cycle);
        Ok(())
    }

    fn was_done(&mut self, done: RecordedCycle) -> Result<(), String> {
        let Err(place) = self.done.binary_search_by_key(&done.id, |done| done.id) else {
            return Err("a recorded cycle is there twice".into());
        };
        self.done.insert(place, done);
        Ok(())
    }

    fn checkpoint_at(&self, number: u64) -> Result<usize, String> {
        let found = self.checkpoints.binary_search_by_key(&number, |checkpoint| checkpoint.number);
        found.map_err(|_| "there is no checkpoint of this number".into())
    }

    fn cycle_at(&self, id: u64) -> Result<usize, String> {
        let found = self.cycles.binary_search_by_key(&id, |cycle| cycle.id.0);
        found.map_err(|_| "there is no cycle of this number".into())
    }
}

impl CycleUpdate {
    fn apply(self, cycle: &mut ToolCycleTransaction) {
        let Self { state, abandoned, held, refused, used, gone, .. } = self;
        (cycle.state, cycle.abandoned) = (state, abandoned);
        (cycle.held, cycle.refused) = (held, refused);
        // A use that was in the transcript keeps that state.
        if used.is_some() || gone {
            cycle.used = used.map_or(UsePosition::Removed, UsePosition::At);
        }
    }
}

fn read(lines: Vec<Line>, format: Format) -> Result<Vec<Message>, String> {
    lines.into_iter().map(|line| line.read(format)).collect()
}
