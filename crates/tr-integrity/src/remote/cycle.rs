//! Tool cycles with a store: the intent is stored before the tool starts, use and result before the
//! caller gets the answer.
use super::{Log, TRIES, Unwritten, slot::begun};
use crate::{
    cycle::{Ended, EventContext, INTENT_NOT_RECORDED, OpenCycle},
    session::{Sessions, ToolUse},
    store::{StoreError, StoreFuture},
};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use tr_core::{Answer, Observer, SessionAction, WhenStoreFails, internal::lock};

impl OpenCycle {
    /// Records the intent in the session with this id; once it is written, the tool may start.
    /// `None` if the session cannot be loaded and the tool is to run nevertheless.
    pub(crate) fn begin_durably(
        sessions: Sessions,
        session: Box<str>,
        tool_use: ToolUse,
        when: WhenStoreFails,
        observer: Option<Arc<dyn Observer>>,
    ) -> StoreFuture<'static, Option<Self>> {
        Box::pin(async move {
            let tell = || {
                let cycle = tool_use.in_session(&session);
                let event = observer.as_ref().and_then(|it| EventContext::of(it, &cycle));
                event.inspect(|event| event.tell(SessionAction::NotRecorded));
            };
            let begin =
                |slot| Self::begin_in(&sessions, slot, &session, &tool_use, observer.as_ref());
            let begun = begun(&sessions, &session, when, begin, Self::begin_again, tell).await;
            let (cycle, error) = match begun {
                Ok(cycle) => return Ok(cycle),
                Err(failed) => failed,
            };
            if let Some(mut cycle) = cycle {
                cycle.refuse(INTENT_NOT_RECORDED);
                if error.is_conflict()
                    && let Ok(slot) = sessions.opened(&session).await
                {
                    cycle.refuse_in(&slot);
                }
            }
            Err(error)
        })
    }

    /// Answers a call whose tool does not run, once its intent is written.
    pub(crate) fn refuse_once_written(
        intent: StoreFuture<'static, Option<Self>>,
        answer: Answer<'static>,
    ) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            match intent.await? {
                Some(cycle) => cycle.record(Ended { answer, failed: true }).await,
                None => Ok(()),
            }
        })
    }

    /// Records how the call ended. After another writer's change, records it in the session as that
    /// writer left it.
    pub(crate) fn record(mut self, ended: Ended) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            self.end(&ended.answer, ended.failed);
            let recorded = self.write(&ended).await;
            if recorded.is_err() {
                self.tell(SessionAction::NotRecorded);
                self.slot.not_recorded(&self.sessions);
            }
            recorded
        })
    }

    async fn write(&mut self, ended: &Ended) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            let Some(log) = &self.slot.log else { return Ok(()) };
            let Err(Unwritten { error, sent }) = log.write(&self.slot.session, self.batch).await
            else {
                return Ok(());
            };
            if !error.is_conflict() || tries == TRIES {
                return Err(error);
            }
            tries += 1;
            let owed = log.owes(error);
            let slot = self.sessions.opened(self.session()).await?;
            // It was written, no reply came, and a compaction has put it into one entry with others.
            if sent.is_some_and(|sent| lock(&slot.session).has_entry(sent)) {
                self.slot = slot;
                return Ok(());
            }
            if let (Some(owed), Some(log)) = (owed, &slot.log) {
                *lock(&log.owed) = Some(owed);
            }
            self.end_in(slot, &ended.answer, ended.failed);
        }
    }
}

impl Log {
    /// The error that must be reported because changes beyond tool cycles were lost, unless it has
    /// been reported.
    pub(super) fn owes(&self, error: StoreError) -> Option<StoreError> {
        let lost = self.lost.get()?;
        let is_news = lost.with_more && !lost.is_reported.swap(true, Relaxed);
        is_news.then_some(error)
    }

    /// Returns a pending error once.
    pub(super) fn tell(&self) -> Result<(), StoreError> {
        lock(&self.owed).take().map_or(Ok(()), Err)
    }
}
