//! Settles abandoned cycles: those whose future was dropped or whose process died.
use super::{CycleId, CycleState, Occurrence, Session, ToolCycleTransaction, cycle::LoadNote};
use tr_core::{Answer, CycleRef, Ran, SessionAction};
use tr_transcript::OUTCOME_UNKNOWN;

/// The content of the answer to a use whose call was abandoned before its tool started.
pub(crate) const NEVER_STARTED: &str = "the call was given up before the tool started";

impl Session {
    /// Abandons a cycle. If its tool was not started, it is rolled back. Otherwise it is settled as
    /// "outcome unknown, may have run": at once if the agent has put its use into the transcript,
    /// else by [`recover`](Self::recover).
    pub fn abandon_cycle(&mut self, id: CycleId, now: u64) {
        let Some(cycle) = self.cycles.iter_mut().find(|cycle| cycle.id == id) else { return };
        match cycle.state {
            CycleState::Pending | CycleState::RolledBack => {
                let content = NEVER_STARTED.into();
                self.fail_cycle(id, &Answer { content, is_error: true, ran: Ran::No }, now);
            }
            _ => {
                cycle.abandoned = true;
                self.note_cycle("cycle_abandoned", id, now);
                if self.has_use_of(id) {
                    self.settle_unknown(id, now);
                }
            }
        }
    }

    /// Settles the abandoned cycles, and returns how many there were. Running cycles are left
    /// unchanged.
    pub fn recover(&mut self, now: u64) -> usize {
        let abandoned = self.cycles.iter().filter(|cycle| cycle.abandoned && cycle.held.is_none());
        let abandoned: Vec<CycleId> = abandoned.map(|cycle| cycle.id).collect();
        abandoned.iter().for_each(|&id| self.settle_unknown(id, now));
        self.flush_tail();
        abandoned.len()
    }

    fn settle_unknown(&mut self, id: CycleId, now: u64) {
        let unknown = Answer { content: OUTCOME_UNKNOWN.into(), is_error: true, ran: Ran::Unknown };
        self.fail_cycle(id, &unknown, now);
        self.note("outcome_unknown", None, None, now);
    }

    /// Abandons and settles the cycles whose process died; returns what was done about each.
    pub(crate) fn settle_orphans(
        &mut self,
        is_live: impl Fn(&ToolCycleTransaction) -> bool,
        now: u64,
    ) -> Vec<LoadNote> {
        let orphans = self.cycles.iter().filter(|cycle| cycle.held.is_none() && !is_live(cycle));
        let orphans = orphans.map(|cycle| (cycle.id, cycle.tool_use.clone(), cycle.state));
        let orphans: Vec<_> = orphans.collect();
        orphans.iter().for_each(|(id, ..)| self.abandon_cycle(*id, now));
        if !orphans.is_empty() {
            self.recover(now);
        }
        let done = orphans.into_iter().map(|(_, tool_use, state)| {
            let started = !matches!(state, CycleState::Pending | CycleState::RolledBack);
            let action = if started { SessionAction::Abandoned } else { SessionAction::RolledBack };
            (Some(tool_use), action)
        });
        done.collect()
    }

    /// Called when the tool of a cycle has answered. If another writer has settled the cycle
    /// meanwhile, begins it again, so that the answer is recorded in the cycle's place.
    pub(crate) fn resume_cycle(
        &mut self,
        id: CycleId,
        cycle: &CycleRef<'_>,
        occurrence: Option<Occurrence>,
        now: u64,
    ) -> CycleId {
        let is_it = |other: &ToolCycleTransaction| {
            // Another call may have the same number: a cycle that was begun in a lost copy of the
            // session was never written.
            let is_same = other.id == id && *other.tool_use.id == *cycle.tool_use_id;
            is_same && other.driver == self.driver
        };
        if self.cycles.iter().any(is_it) {
            return id;
        }
        let id = self.begin_cycle(cycle, now);
        self.start_cycle(id);
        let used = occurrence.map(|occurrence| self.find_use(cycle.tool_use_id, occurrence));
        if let Some(cycle) = self.cycles.iter_mut().find(|cycle| cycle.id == id) {
            cycle.used = used.unwrap_or(cycle.used);
        }
        id
    }
}
