//! Breakers, all driven in the same way.
mod acts;
mod ours;
mod peers;
mod scenarios;

pub(crate) use self::scenarios::section;
use crate::cell::Name;
use futures_util::future::BoxFuture;
use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tower::{Service, ServiceExt};

/// How a run fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The tool is down.
    Down,
    /// The tool is well, and says no.
    No,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Error for Fault {}

/// One run of the tool behind a breaker.
pub(crate) struct Work(BoxFuture<'static, Result<(), Fault>>);

impl Work {
    pub(crate) fn new(work: impl Future<Output = Result<(), Fault>> + Send + 'static) -> Self {
        Self(Box::pin(work))
    }
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallResult {
    Succeeded,
    Failed,
    /// The breaker did not let it through.
    Refused,
}

/// When a breaker opens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trip {
    /// At so many failures in a row.
    InARow(u32),
    /// When half of so many calls, the last ones, have failed.
    HalfOf(u32),
    /// When half of the calls within this time, at least five, have failed.
    HalfWithin(Duration),
}

/// How a breaker is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) trip: Trip,
    pub(crate) cooldown: Duration,
    /// Probes at once, all of which must succeed.
    pub(crate) probes: u32,
    /// Whether the circuit is shared, if that needs a setting.
    pub(crate) shared: bool,
}

/// A breaker.
pub(crate) struct Circuit {
    call: Box<dyn Fn(Work) -> BoxFuture<'static, CallResult>>,
    /// Another service that the same layer was applied to, where there are layers.
    again: Option<Box<Self>>,
    /// Whether the tool is busy, so that its service gets ready for no call, where there are services.
    busy: Option<Arc<AtomicBool>>,
}

/// The tool as a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tool {
    busy: Arc<AtomicBool>,
}

impl Service<Work> for Tool {
    type Response = ();
    type Error = Fault;
    type Future = BoxFuture<'static, Result<(), Fault>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.busy.load(Relaxed) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn call(&mut self, work: Work) -> Self::Future {
        work.0
    }
}

impl Circuit {
    fn new(call: impl Fn(Work) -> BoxFuture<'static, CallResult> + 'static) -> Self {
        Self { call: Box::new(call), again: None, busy: None }
    }

    /// A tower service; `is_refusal` knows the breaker's own error.
    fn of<S>(service: S, is_refusal: fn(&S::Error) -> bool) -> Self
    where
        S: Service<Work, Response = ()> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send + 'static,
    {
        Self::new(move |work| {
            let service = service.clone();
            Box::pin(async move {
                match service.oneshot(work).await {
                    Ok(()) => CallResult::Succeeded,
                    Err(error) if is_refusal(&error) => CallResult::Refused,
                    Err(_) => CallResult::Failed,
                }
            })
        })
    }

    fn twice(self, again: Self) -> Self {
        Self { again: Some(Box::new(again)), ..self }
    }

    fn around(self, tool: &Tool) -> Self {
        Self { busy: Some(tool.busy.clone()), ..self }
    }

    fn call(&self, work: Work) -> BoxFuture<'static, CallResult> {
        (self.call)(work)
    }
}

impl fmt::Debug for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Circuit").finish_non_exhaustive()
    }
}

/// A breaker under test; what it cannot be set up as, it says.
pub(crate) struct Subject {
    name: Name,
    make: fn(&Rules) -> Result<Circuit, &'static str>,
}

const SUBJECTS: [Subject; 4] = [
    Subject { name: Name::of("tr-breaker", ""), make: ours::circuit },
    Subject { name: Name::of("tower-resilience", "circuitbreaker"), make: peers::tower_resilience },
    Subject { name: Name::of("failsafe", ""), make: peers::failsafe },
    Subject { name: Name::of("recloser", ""), make: peers::recloser },
];
