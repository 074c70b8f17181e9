//! What happened to a session, kept in it.
use super::{Archive, CycleId, Incident, Session};

/// Incidents and archives that a session keeps; older ones go.
const KEPT_INCIDENTS: usize = 1_000;
const KEPT_ARCHIVES: usize = 10;

impl Session {
    /// Something happened: `gone` messages went, back to checkpoint `id`.
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

    pub(super) fn note_verbose(&mut self, kind: &'static str, id: &str, now: u64) {
        if self.config.verbose {
            self.note(kind, Some(id), None, now);
        }
    }

    /// It was loaded from its store.
    pub(crate) fn loaded(&mut self, now: u64) {
        if self.config.verbose {
            self.note("load", None, None, now);
        }
    }

    /// Of a cycle that is on its way.
    pub(super) fn note_cycle(&mut self, kind: &'static str, id: CycleId, now: u64) {
        if self.config.verbose
            && let Some(cycle) = self.cycles.iter().find(|cycle| cycle.id == id)
        {
            let checkpoint = cycle.checkpoint.clone();
            self.note(kind, Some(&checkpoint), None, now);
        }
    }

    pub(super) fn keep_incident(&mut self, incident: Incident) {
        if self.incidents.len() == KEPT_INCIDENTS {
            self.incidents.pop_front();
        }
        self.incidents.push_back(incident);
    }

    pub(super) fn keep_archive(&mut self, archive: Archive) {
        if self.archives.len() == KEPT_ARCHIVES {
            self.archives.pop_front();
        }
        self.archives.push_back(archive);
    }
}
