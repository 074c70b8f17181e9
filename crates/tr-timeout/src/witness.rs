//! Whom to tell of a timeout, and about which call.
use std::{sync::Arc, time::Duration};
use tr_core::{CallInfo, Event, Observer, Ran};

/// An observer, and what it is told of a call whose request will be gone by then.
#[derive(Debug)]
pub(crate) struct Witness {
    observer: Arc<dyn Observer>,
    tool: Box<str>,
    request_id: Option<Box<str>>,
    tool_call_id: Option<Box<str>>,
    session: Option<Box<str>>,
    correlation: Option<Box<str>>,
    attempt: u32,
}

impl Witness {
    /// `None` if nobody listens.
    #[inline]
    pub(crate) fn of<'r>(
        observer: Option<&Arc<dyn Observer>>,
        info: impl FnOnce() -> CallInfo<'r>,
    ) -> Option<Box<Self>> {
        let observer = observer.filter(|observer| observer.enabled())?;
        Some(Box::new(Self::new(observer.clone(), info())))
    }

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
        let call = CallInfo {
            tool: &self.tool,
            request_id: self.request_id.as_deref(),
            tool_call_id: self.tool_call_id.as_deref(),
            session: self.session.as_deref(),
            correlation: self.correlation.as_deref(),
            attempt: self.attempt,
        };
        self.observer.on_event(&call, &Event::TimedOut { after, ran });
    }
}
