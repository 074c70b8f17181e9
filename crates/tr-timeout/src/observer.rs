//! The observer of timeouts, and the description of the call that it gets.
use std::{fmt, sync::Arc, time::Duration};
use tr_core::{CallInfo, Event, Observer, Ran, internal::Sharded};

/// The observer of timeouts, if there is one; sharded, because services are cloned for every call.
#[derive(Clone)]
pub(crate) struct SharedObserver(Option<Sharded<Arc<dyn Observer>>>);

impl SharedObserver {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self(Some(Sharded::new(observer)))
    }

    /// A handle for another layer or service.
    pub(crate) fn whole(&self) -> Self {
        Self(self.0.as_ref().map(Sharded::whole))
    }

    /// Switches to this thread's reference count.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if let Some(observer) = &mut self.0 {
            observer.settle();
        }
    }
}

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
        observer: &SharedObserver,
        info: impl FnOnce() -> CallInfo<'r>,
    ) -> Option<Box<Self>> {
        let observer = observer.0.as_ref().filter(|observer| observer.enabled())?;
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

impl fmt::Debug for SharedObserver {
    /// Whether there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some(_)" } else { "None" })
    }
}
