//! One session: its transcript, checkpoints and cycles. Pure: time comes as an argument.
mod abandoned;
mod chain;
mod checkpoint;
mod cycle;
mod cycles;
mod incidents;
pub(crate) mod journal;
mod messages;
mod place;
mod recover;
mod results;
mod sessions;
mod used;

pub(crate) use self::{
    abandoned::NEVER_STARTED,
    cycle::{LoadNote, RecordedCycle},
    sessions::Slot,
    used::Occurrence,
};
pub use self::{
    checkpoint::{Checkpoint, Operation, RollbackResult},
    cycle::{
        CycleId, CycleMode, CycleState, ToolCycleResult, ToolCycleTransaction, ToolResult, ToolUse,
    },
    results::{Archive, ErrorRecovery, Incident, RecoveryAction, ResetOptions, ResetResult},
    sessions::{Sessions, SessionsBuilder},
};
use crate::{config::Layer0Config, store::Revision};
use chain::Chain;
use journal::SessionJournal;
use std::{collections::VecDeque, sync::Arc};
use tr_transcript::{
    CheckpointError, Format, Message, Repair, RepairPlan, RepairResult, StalePlan, Transcript,
    ValidationResult, Validator, internal,
};

/// One session: its transcript, checkpoints, tool cycles, incidents and archive.
///
/// It does no I/O and reads no clock: `now` is milliseconds since the Unix epoch.
///
/// ```
/// use tr_integrity::{Format, Operation, Session};
///
/// let mut session = Session::new("s-1", Format::AnthropicMessages);
/// session.push(Format::AnthropicMessages.read(r#"{"role":"user","content":"hi"}"#)?);
/// let checkpoint = session.checkpoint(Operation::ApiCall, 0);
/// session.push(Format::AnthropicMessages.read(r#"{"role":"assistant","content":"cut o"}"#)?);
/// let rolled_back = session.rollback(&checkpoint.id, 1)?;
/// assert_eq!((rolled_back.messages_removed, rolled_back.new_message_count), (1, 1));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    id: Box<str>,
    transcript: Transcript,
    validator: Validator,
    chain: Chain,
    checkpoints: Vec<Checkpoint>,
    checkpoints_made: u64,
    cycles: Vec<ToolCycleTransaction>,
    cycles_begun: u64,
    /// Cycles that were recorded after a checkpoint that is still open, in the order of their ids.
    done: Vec<RecordedCycle>,
    /// The ends of the last cycles since it was loaded.
    ended: VecDeque<(CycleId, CycleState)>,
    incidents: VecDeque<Incident>,
    archives: VecDeque<Archive>,
    /// The last entries of its log that are in it.
    revisions: VecDeque<Revision>,
    /// How many turns have begun since it was loaded.
    turns: u64,
    config: Arc<Layer0Config>,
    mode: CycleMode,
    /// Identifies this process's cycles among those that share a store.
    driver: u64,
    journal: SessionJournal,
}

impl Session {
    /// A session without messages.
    #[must_use]
    pub fn new(id: impl Into<Box<str>>, format: Format) -> Self {
        Self::load(id, Transcript::new(format))
    }

    /// A session with existing messages. It is validated; an invalid transcript is loaded
    /// nevertheless.
    #[must_use]
    pub fn load(id: impl Into<Box<str>>, transcript: Transcript) -> Self {
        let mut chain = Chain::default();
        transcript.messages().iter().for_each(|message| chain.push(message));
        Self {
            id: id.into(),
            validator: Validator::of(&transcript),
            transcript,
            chain,
            checkpoints: Vec::new(),
            checkpoints_made: 0,
            cycles: Vec::new(),
            cycles_begun: 0,
            done: Vec::new(),
            ended: VecDeque::new(),
            incidents: VecDeque::new(),
            archives: VecDeque::new(),
            revisions: VecDeque::new(),
            turns: 0,
            config: Arc::default(),
            mode: CycleMode::default(),
            driver: 0,
            journal: SessionJournal::default(),
        }
    }

    fn configured(mut self, config: &Arc<Layer0Config>, mode: CycleMode, driver: u64) -> Self {
        (self.config, self.mode, self.driver) = (Arc::clone(config), mode, driver);
        self
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its messages.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The validator, with all findings and the uses that wait for results.
    #[must_use]
    pub fn validator(&self) -> &Validator {
        &self.validator
    }

    /// Validates the session.
    #[must_use]
    pub fn validate(&self) -> ValidationResult {
        self.validator.result()
    }

    /// Its incidents, oldest first.
    pub fn incidents(&self) -> impl Iterator<Item = &Incident> {
        self.incidents.iter()
    }

    /// Its messages before each reset that archived them, oldest first.
    pub fn archives(&self) -> impl Iterator<Item = &Archive> {
        self.archives.iter()
    }

    /// Adds a message that was read in the transcript's format.
    ///
    /// If it follows a step with running tools, each use of that step first gets a result: the
    /// tool's, if it is known, else an error "outcome unknown, may have run", which the tool's
    /// result replaces later.
    pub fn push(&mut self, message: Message) {
        self.turns += u64::from(message.begins_turn());
        let step = self.validator.live_step();
        let ends = self.cycles.iter().any(|cycle| self.is_awaited(cycle))
            && !self.validator.extends_step(&message);
        let ends = ends && !internal::is_aside(self.transcript.format(), &message);
        if let Some(step) = step.filter(|_| ends) {
            let held = self.release_held();
            held.into_iter().chain([message]).for_each(|message| self.append(message));
            self.adopt(self.transcript.len() - 1);
            return self.repair_step(step);
        }
        self.append(message);
        self.adopt(self.transcript.len() - 1);
    }

    /// Makes a checkpoint before an operation that may fail. Takes constant time, except for the
    /// snapshot.
    pub fn checkpoint(&mut self, operation: Operation, now: u64) -> Checkpoint {
        self.checkpoints_made += 1;
        let message_index = self.transcript.len();
        let checkpoint = Checkpoint {
            id: Checkpoint::id_of(&self.id, self.checkpoints_made),
            session_id: self.id.clone(),
            timestamp: now,
            message_index,
            content_hash: self.chain.prefix(message_index).to_hex().as_str().into(),
            operation,
            snapshot: self.config.snapshot_messages.then(|| self.transcript.messages().to_vec()),
            is_committed: false,
            number: self.checkpoints_made,
        };
        self.checkpoints.push(checkpoint.clone());
        self.note_verbose("checkpoint", Some(&checkpoint.id), now);
        checkpoint
    }

    /// Marks a checkpoint's operation as done, and removes old checkpoints beyond the retention.
    ///
    /// # Errors
    /// If there is no such checkpoint.
    pub fn commit(&mut self, id: &str, now: u64) -> Result<(), CheckpointError> {
        let found = self.checkpoints.iter_mut().find(|checkpoint| &*checkpoint.id == id);
        found.ok_or_else(|| CheckpointError::NotFound(id.into()))?.is_committed = true;
        if self.prune(self.config.checkpoint_retention) > 0 {
            self.note_verbose("prune", Some(id), now);
        }
        let open = self.checkpoints.iter().filter(|checkpoint| !checkpoint.is_committed);
        let first = open.map(|checkpoint| checkpoint.message_index).min().unwrap_or(usize::MAX);
        self.done.retain(|done| done.at >= first);
        self.note_verbose("commit", Some(id), now);
        Ok(())
    }

    /// Rolls the session back to a checkpoint: removes the messages since then, and the held
    /// results of their uses. Takes a few nanoseconds for each removed tool use; memory is freed as
    /// messages are pushed, two for each push.
    ///
    /// # Errors
    /// If there is no such checkpoint, or the messages before it have changed. Then nothing is
    /// removed.
    pub fn rollback(&mut self, id: &str, now: u64) -> Result<RollbackResult, CheckpointError> {
        let found = self.checkpoints.iter().find(|checkpoint| &*checkpoint.id == id);
        let found = found.ok_or_else(|| CheckpointError::NotFound(id.into()))?;
        if !self.holds(found) {
            return Err(CheckpointError::Mismatch);
        }
        Ok(self.go_back(found.message_index, Some(id), now))
    }

    /// Keeps the first `len` messages, also where no checkpoint leads there. Removes what a
    /// [rollback](Self::rollback) would remove; without effect if there are no more messages.
    pub fn truncate(&mut self, len: usize, now: u64) -> RollbackResult {
        self.go_back(len.min(self.transcript.len()), None, now)
    }

    fn go_back(&mut self, index: usize, id: Option<&str>, now: u64) -> RollbackResult {
        let messages_removed = self.transcript.len() - index;
        self.cut(index);
        self.lose_uses(index);
        self.drop_unawaited();
        self.done.retain(|done| done.at < index);
        self.checkpoints.retain(|other| id != Some(&*other.id) && other.message_index <= index);
        self.note("rollback", id, Some(messages_removed), now);
        RollbackResult { success: true, messages_removed, new_message_count: index }
    }

    /// Replaces all messages by a checkpoint's snapshot, where a rollback is refused.
    ///
    /// # Errors
    /// If there is no such checkpoint with a snapshot.
    pub fn restore(&mut self, id: &str, now: u64) -> Result<(), CheckpointError> {
        let found = self.checkpoints.iter().find(|checkpoint| &*checkpoint.id == id);
        let snapshot = found.and_then(|checkpoint| checkpoint.snapshot.clone());
        let messages = snapshot.ok_or_else(|| CheckpointError::NotFound(id.into()))?;
        let own = self.transcript.messages().iter();
        let same = own.zip(&messages).take_while(|(own, other)| own.raw() == other.raw()).count();
        self.replace(same, messages[same..].to_vec());
        self.drop_unawaited();
        self.note("restore", Some(id), None, now);
        Ok(())
    }

    /// The latest checkpoint to which the session can be rolled back.
    #[must_use]
    pub fn latest(&self) -> Option<&Checkpoint> {
        self.checkpoints.iter().rfind(|checkpoint| self.holds(checkpoint))
    }

    /// The latest checkpoint whose operation has not ended.
    #[must_use]
    pub fn active(&self) -> Option<&Checkpoint> {
        let open = |checkpoint: &&Checkpoint| !checkpoint.is_committed && self.holds(checkpoint);
        self.checkpoints.iter().rfind(open)
    }

    /// All checkpoints, oldest first.
    #[must_use]
    pub fn checkpoints(&self) -> &[Checkpoint] {
        &self.checkpoints
    }

    /// Removes all but the last `keep` committed checkpoints, and all but the last `keep` that were
    /// made by hand ([`Operation::Manual`]), which are counted separately; returns how many were
    /// removed.
    pub fn prune(&mut self, keep: usize) -> usize {
        let kind = |checkpoint: &Checkpoint| usize::from(checkpoint.operation == Operation::Manual);
        let mut left = [0_usize; 2];
        for checkpoint in self.checkpoints.iter().filter(|checkpoint| checkpoint.is_committed) {
            left[kind(checkpoint)] += 1;
        }
        left = left.map(|committed| committed.saturating_sub(keep));
        let surplus = left.iter().sum();
        self.checkpoints.retain(|checkpoint| {
            let left = &mut left[kind(checkpoint)];
            let goes = checkpoint.is_committed && *left > 0;
            *left -= usize::from(goes);
            !goes
        });
        surplus
    }

    /// Plans a repair.
    pub fn plan(&self, repair: Repair) -> RepairPlan {
        repair.plan(&self.transcript)
    }

    /// Applies the plan of a repair.
    ///
    /// # Errors
    /// If the session has changed since; it is then left unchanged.
    pub fn apply(&mut self, plan: RepairPlan, now: u64) -> Result<RepairResult, StalePlan> {
        let (from, is_empty) = (plan.untouched(), plan.is_empty());
        let mut repaired = self.transcript.clone();
        let result = plan.apply(&mut repaired)?;
        if !is_empty {
            self.replace(from, repaired.messages()[from..].to_vec());
            self.place_unawaited();
            self.note("repair", None, None, now);
        }
        Ok(result)
    }

    /// Resets the session to the system's prompt. Removes checkpoints, and cycles with held
    /// results.
    pub fn reset(&mut self, options: ResetOptions, now: u64) -> ResetResult {
        if options.archive {
            let messages = self.transcript.messages().to_vec();
            self.journal.archived(now);
            self.keep_archive(Archive { timestamp: now, messages });
        }
        let messages = self.transcript.messages().iter();
        let prompt = messages.filter(|message| message.is_system_prompt()).cloned().collect();
        self.replace(0, prompt);
        self.checkpoints.clear();
        self.drop_cycles(|cycle| cycle.held.is_some());
        self.done.clear();
        self.note("reset", None, None, now);
        let remaining_messages = self.transcript.len();
        ResetResult { success: true, archived: options.archive, remaining_messages }
    }

    /// Whether the messages before a checkpoint are unchanged.
    fn holds(&self, checkpoint: &Checkpoint) -> bool {
        let index = checkpoint.message_index;
        index <= self.transcript.len()
            && *self.chain.prefix(index).to_hex().as_str() == *checkpoint.content_hash
    }
}
