//! A session's own record of incidents.
use super::{Archive, CycleId, Incident, Session};
use std::collections::VecDeque;

/// How many incidents and archives a session keeps; older ones are dropped.
const KEPT_INCIDENTS: usize = 1_000;
const KEPT_ARCHIVES: usize = 10;

impl Session {
    /// Notes an incident: `gone` messages were removed by a rollback to checkpoint `id`.
    pub(crate) fn note(
        &mut self,
        kind: &'static str,
        id: Option<&str>,
        gone: Option<usize>,
        now: u64,
    ) {
        let incident = Incident {
            kind: kind.into(),
            timestamp: now,
            checkpoint: id.map(Into::into),
            rolled_back: gone,
        };
        self.journal.noted(&incident);
        self.keep_incident(incident);
    }

    pub(crate) fn note_verbose(&mut self, kind: &'static str, id: Option<&str>, now: u64) {
        if self.config.verbose {
            self.note(kind, id, None, now);
        }
    }

    /// Notes an incident of a cycle that has not ended.
    pub(super) fn note_cycle(&mut self, kind: &'static str, id: CycleId, now: u64) {
        if self.config.verbose
            && let Some(cycle) = self.cycles.iter().find(|cycle| cycle.id == id)
        {
            let checkpoint = cycle.checkpoint.clone();
            self.note(kind, Some(&checkpoint), None, now);
        }
    }

    pub(super) fn keep_incident(&mut self, incident: Incident) {
        keep(&mut self.incidents, KEPT_INCIDENTS, incident);
    }

    pub(super) fn keep_archive(&mut self, archive: Archive) {
        keep(&mut self.archives, KEPT_ARCHIVES, archive);
    }
}

/// Keeps `item` as the last of so many.
pub(super) fn keep<T>(all: &mut VecDeque<T>, most: usize, item: T) {
    if all.len() == most {
        all.pop_front();
    }
    all.push_back(item);
}
