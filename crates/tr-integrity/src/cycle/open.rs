//! A cycle that a future drives; if it is dropped early, recovery settles the cycle.
use super::error::INTENT_NOT_RECORDED;
use crate::session::{CycleId, NEVER_STARTED, Occurrence, Session, Sessions, Slot, ToolUse};
use std::{mem, sync::Arc};
use tr_core::{Answer, CallInfo, CycleRef, Event, Observer, Ran, SessionAction};

/// A cycle that a future drives; if it is dropped early, recovery settles the cycle.
pub(crate) struct OpenCycle {
    pub(crate) sessions: Sessions,
    pub(crate) slot: Slot,
    id: CycleId,
    stage: Stage,
    /// The batch of changes that its end is in.
    pub(crate) batch: u64,
    /// What a second attempt needs, if another writer's change may force one.
    again: Option<Box<SecondAttempt>>,
    event: Option<EventContext>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The intent waits for the store.
    Intended,
    /// The tool may run.
    Started,
    /// The tool answered.
    Over,
}

struct SecondAttempt {
    session: Box<str>,
    tool_use: ToolUse,
    /// Identifies the use in any copy of the session.
    occurrence: Option<Occurrence>,
}

/// What an event needs to know of a call after its request is consumed.
pub(crate) struct EventContext {
    observer: Arc<dyn Observer>,
    tool: Box<str>,
    tool_use_id: Box<str>,
    session: Box<str>,
}

/// How a call ended, without the call itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) answer: Answer<'static>,
    pub(crate) failed: bool,
}

impl OpenCycle {
    /// Records the intent; from here on the tool may run.
    pub(super) fn begin(
        sessions: &Sessions,
        cycle: &CycleRef<'_>,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Self {
        let slot = sessions.open_slot(cycle.session);
        Self::intend(sessions, slot, cycle, observer, Session::start_cycle).started()
    }

    /// Records the intent, which is to be written before the tool runs.
    pub(crate) fn begin_in(
        sessions: &Sessions,
        slot: Slot,
        session: &str,
        tool_use: &ToolUse,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Self {
        let cycle = tool_use.in_session(session);
        // After this is written, no reader can tell whether the tool has started.
        let written = Session::start_once_written;
        let mut open = Self::intend(sessions, slot, &cycle, observer, written);
        let tool_use = tool_use.clone();
        let id = open.id;
        let name = |session: &mut Session, _| session.occurrence(id);
        let occurrence = sessions.work_on_cycle(&open.slot, name);
        open.again =
            Some(Box::new(SecondAttempt { session: session.into(), tool_use, occurrence }));
        if let Some(log) = &open.slot.log {
            log.set_live(open.id);
        }
        open
    }

    fn intend(
        sessions: &Sessions,
        slot: Slot,
        cycle: &CycleRef<'_>,
        observer: Option<&Arc<dyn Observer>>,
        start: fn(&mut Session, CycleId),
    ) -> Self {
        let id = sessions.work_on_cycle(&slot, |session, now| {
            let id = session.begin_cycle(cycle, now);
            start(session, id);
            id
        });
        let event = observer.and_then(|observer| EventContext::of(observer, cycle));
        let sessions = sessions.clone();
        Self { sessions, slot, id, stage: Stage::Intended, batch: 0, again: None, event }
    }

    /// The session's id, if another writer's change may force a second attempt.
    pub(crate) fn session(&self) -> &str {
        self.again.as_ref().map_or("", |again| &again.session)
    }

    /// The tool is about to run.
    pub(super) fn started(mut self) -> Self {
        if self.again.is_some() {
            let id = self.id;
            self.sessions.work_on_cycle(&self.slot, |session, _| session.start_cycle(id));
        }
        self.stage = Stage::Started;
        self
    }

    /// The tool does not run.
    pub(crate) fn refuse(&mut self, why: &str) {
        self.end(&Answer { content: why.into(), is_error: true, ran: Ran::No }, true);
    }

    /// Another writer's change discarded this copy of the session, and the intent with it.
    pub(crate) fn begin_again(mut self) {
        self.stage = Stage::Over;
    }

    /// Refuses in the session as the other writer left it: the agent's use is answered there.
    pub(crate) fn refuse_in(&self, slot: &Slot) {
        let Some(SecondAttempt { session: name, tool_use, occurrence }) = self.again.as_deref()
        else {
            return;
        };
        let content = INTENT_NOT_RECORDED.into();
        let answer = Answer { content, is_error: true, ran: Ran::No };
        self.sessions.work_on_cycle(slot, |session, now| {
            if occurrence.is_some_and(|it| session.is_pending_there(&tool_use.id, it)) {
                let id = session.begin_cycle(&tool_use.in_session(name), now);
                session.fail_cycle(id, &answer, now);
            }
        });
    }

    /// The call is over; `failed` says that the tool gave no answer of its own.
    pub(crate) fn end(&mut self, answer: &Answer<'_>, failed: bool) {
        self.stage = Stage::Over;
        let id = self.id;
        let ended;
        (ended, self.batch) = self.sessions.work_on_cycle(&self.slot, |session, now| {
            let ended = if failed {
                session.fail_cycle(id, answer, now)
            } else {
                session.finish_cycle(id, answer, now)
            };
            (ended, session.next_batch())
        });
        if !ended.success {
            let rolled_back = ended.rolled_back == Some(true);
            self.tell(if rolled_back {
                SessionAction::RolledBack
            } else {
                SessionAction::RecordedFailure
            });
        }
    }

    /// Ends the cycle in the session as the other writer left it.
    pub(crate) fn end_in(&mut self, slot: Slot, answer: &Answer<'_>, failed: bool) {
        let Some(SecondAttempt { session: name, tool_use, occurrence }) = self.again.as_deref()
        else {
            return;
        };
        let cycle = tool_use.in_session(name);
        let id = self.id;
        (self.id, self.batch) = self.sessions.work_on_cycle(&slot, |session, now| {
            let id = session.resume_cycle(id, &cycle, *occurrence, now);
            if failed {
                session.fail_cycle(id, answer, now);
            } else {
                session.finish_cycle(id, answer, now);
            }
            (id, session.next_batch())
        });
        let before = mem::replace(&mut self.slot, slot);
        if let Some(log) = &before.log {
            log.unset_live(id);
        }
    }

    pub(crate) fn tell(&self, action: SessionAction) {
        if let Some(event) = &self.event {
            event.tell(action);
        }
    }
}

impl Drop for OpenCycle {
    fn drop(&mut self) {
        match self.stage {
            Stage::Intended => self.refuse(NEVER_STARTED),
            Stage::Started => {
                let id = self.id;
                self.sessions.work_on_cycle(&self.slot, |session, now| {
                    session.abandon_cycle(id, now);
                });
                self.tell(SessionAction::Abandoned);
            }
            Stage::Over => {}
        }
        if let Some(log) = &self.slot.log {
            log.unset_live(self.id);
        }
    }
}

impl EventContext {
    /// `None` if no observer listens.
    pub(crate) fn of(observer: &Arc<dyn Observer>, cycle: &CycleRef<'_>) -> Option<Self> {
        observer.enabled().then(|| Self {
            observer: Arc::clone(observer),
            tool: cycle.name.into(),
            tool_use_id: cycle.tool_use_id.into(),
            session: cycle.session.into(),
        })
    }

    pub(crate) fn tell(&self, action: SessionAction) {
        let mut call = CallInfo::of(&self.tool);
        call.tool_call_id = Some(&self.tool_use_id);
        call.session = Some(&self.session);
        self.observer.on_event(&call, &Event::Session { action, removed: 0 });
    }
}
