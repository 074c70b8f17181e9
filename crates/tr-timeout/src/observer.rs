//! The observer of timeouts, and the description of the call that it gets.
use std::{sync::Arc, time::Duration};
use tr_core::{CallInfo, Event, Observer, Ran, internal::Shard};

/// An observer with a description of the call, whose request is gone when the timeout fires.
#[derive(Debug)]
pub(crate) struct TimeoutObserver {
    observer: Arc<dyn Observer>,
    tool: Box<str>,
    request_id: Option<Box<str>>,
    tool_call_id: Option<Box<str>>,
    session: Option<Box<str>>,
    correlation: Option<Box<str>>,
    attempt: u32,
}

impl TimeoutObserver {
    /// `None` without an enabled observer.
    #[inline]
    pub(crate) fn of<'r>(
        observer: Option<&Shard<Arc<dyn Observer>>>,
        info: impl FnOnce() -> CallInfo<'r>,
    ) -> Option<Box<Self>> {
        let observer = observer.filter(|observer| observer.enabled())?;
        Some(Box::new(Self::new(Arc::clone(observer), info())))
    }

    // The rare case, out of the way of all others.
    #[inline(never)]
    fn new(observer: Arc<dyn Observer>, info: CallInfo<'_>) -> Self {
        Self {
            observer,
            tool: info.tool.into(),
            request_id: info.request_id.map(Into::into),
            tool_call_id: info.tool_call_id.map(Into::into),
            session: info.session.map(Into::into),
            correlation: info.correlation.map(Into::into),
            attempt: info.attempt,
        }
    }

    pub(crate) fn tell(&self, after: Duration, ran: Ran) {
        let mut call = CallInfo::of(&self.tool);
        call.request_id = self.request_id.as_deref();
        call.tool_call_id = self.tool_call_id.as_deref();
        call.session = self.session.as_deref();
        call.correlation = self.correlation.as_deref();
        call.attempt = self.attempt;
        self.observer.on_event(&call, &Event::TimedOut { after, ran });
    }
}
