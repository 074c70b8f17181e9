//! A cycle that a future drives: dropped before its end, it is left to recovery.
use crate::session::{CycleId, Session, Sessions, ToolCycleResult};
use std::{
    fmt,
    sync::{Arc, Mutex},
};
use tr_core::{Answer, CallInfo, CycleRef, Event, Observer};

/// A cycle that a future drives: dropped before its end, it is left to recovery.
pub(super) struct OpenCycle {
    sessions: Sessions,
    session: Arc<Mutex<Session>>,
    id: CycleId,
    is_over: bool,
    witness: Option<Witness>,
}

/// What an event says of a call whose request is gone.
struct Witness {
    observer: Arc<dyn Observer>,
    tool: Box<str>,
    tool_use_id: Box<str>,
    session: Box<str>,
}

impl OpenCycle {
    /// Records the intent; from here on the tool may run.
    pub(super) fn begin(
        sessions: &Sessions,
        cycle: &CycleRef<'_>,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Self {
        let session = sessions.open(cycle.session);
        let id = sessions.work(&session, |session, now| {
            let id = session.begin_cycle(cycle, now);
            session.start_cycle(id);
            id
        });
        let witness = observer.filter(|observer| observer.enabled()).map(|observer| Witness {
            observer: Arc::clone(observer),
            tool: cycle.name.into(),
            tool_use_id: cycle.tool_use_id.into(),
            session: cycle.session.into(),
        });
        Self { sessions: sessions.clone(), session, id, is_over: false, witness }
    }

    pub(super) fn finish(self, answer: &Answer<'_>) {
        self.end(|session, id, now| session.finish_cycle(id, answer, now));
    }

    pub(super) fn fail(self, answer: &Answer<'_>) {
        self.end(|session, id, now| session.fail_cycle(id, answer, now));
    }

    fn end(mut self, end: impl FnOnce(&mut Session, CycleId, u64) -> ToolCycleResult) {
        self.is_over = true;
        let id = self.id;
        let ended = self.sessions.work(&self.session, |session, now| end(session, id, now));
        if let (Some(witness), false) = (&self.witness, ended.success) {
            let rolled_back = ended.rolled_back == Some(true);
            witness.tell(if rolled_back { "rolled_back" } else { "recorded_failure" });
        }
    }
}

impl Drop for OpenCycle {
    fn drop(&mut self) {
        if !self.is_over {
            self.sessions.work(&self.session, |session, now| session.abandon_cycle(self.id, now));
            if let Some(witness) = &self.witness {
                witness.tell("abandoned");
            }
        }
    }
}

impl Witness {
    fn tell(&self, action: &'static str) {
        let call = CallInfo {
            tool_call_id: Some(&self.tool_use_id),
            session: Some(&self.session),
            ..CallInfo::of(&self.tool)
        };
        self.observer.on_event(&call, &Event::Session { action, removed: 0 });
    }
}

impl fmt::Debug for OpenCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenCycle").field(&self.id).finish()
    }
}
