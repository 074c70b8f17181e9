//! A tool that follows a script and records its calls.
//!
//! # When to use
//!
//! As the inner service of a layer under test: it fails n times, hangs, panics, responds late, is
//! busy or never ready, and counts attempts, cancellations and overlaps. It panics on misuse: when
//! `call` comes without `poll_ready` of the same instance (a clone starts unready), and when its
//! future is polled after completion.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tower::{Service, ServiceExt, timeout::Timeout};
//! use tr_testkit::tool::{End, Scripted, Step};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! let late = Step::after(Duration::from_secs(9), Step::Ok("late"));
//! let tool = Scripted::script([Step::err("down"), late, Step::Ok("hi")]).then_repeat_last();
//! let handle = tool.handle();
//! let mut layered = Timeout::new(tool, Duration::from_secs(5));
//!
//! assert!(layered.ready().await.unwrap().call("a").await.is_err()); // down
//! assert!(layered.ready().await.unwrap().call("b").await.is_err()); // timed out
//! assert_eq!(layered.ready().await.unwrap().call("c").await.unwrap(), "hi");
//!
//! assert_eq!(handle.requests(), ["a", "b", "c"]);
//! assert_eq!(handle.starts(), [0, 0, 5].map(Duration::from_secs));
//! let ends: Vec<_> = handle.attempts().iter().map(|a| a.ended.unwrap().1).collect();
//! assert_eq!(ends, [End::Err, End::Cancelled, End::Ok]);
//! assert_eq!(handle.in_flight(), 0);
//! # }
//! ```
//!
//! # Errors
//!
//! [`Failure`], which has the text of its cause, and the cause as `source()`.
//!
//! # Defaults
//!
//! Always ready, without a limit of overlaps; every attempt is logged. Delays use tokio's clock, so
//! a paused clock skips them.

mod future;
mod handle;
mod state;
mod step;

pub use self::{
    future::Playing,
    state::{Attempt, Breach, End, Handle},
    step::{Failure, Step},
};

use self::{future::quiet_panic, state::Permit};
use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};
use tower_service::Service;
use tr_core::setters;

/// A tool that follows a script; clones are further instances of the same tool and share its
/// script.
pub struct Scripted<Req, Res> {
    script: Arc<Script<Req, Res>>,
    repeat_last: bool,
    unready: Option<Failure>,
    tool: Handle<Req>,
    instance: u64,
    permit: Option<Permit<Req>>,
}

enum Script<Req, Res> {
    Steps(Box<[Step<Res>]>),
    By(Chooser<Req, Res>),
}

type Chooser<Req, Res> = Box<dyn Fn(usize, &Req) -> Step<Res> + Send + Sync>;

impl<Req, Res> Scripted<Req, Res> {
    /// Runs one step per call, in this order. Calls of all clones count together.
    ///
    /// A call past the end panics, unless the script continues by
    /// [`then_repeat_last`](Self::then_repeat_last).
    pub fn script(steps: impl IntoIterator<Item = Step<Res>>) -> Self {
        Self::new(Script::Steps(steps.into_iter().collect()))
    }

    /// Chooses the step of each call by a function of its number, from 0, and its request.
    ///
    /// ```
    /// use tr_testkit::tool::{Scripted, Step};
    /// let doubles = Scripted::by(|n, request: &u32| match n {
    ///     0 => Step::err("warming up"),
    ///     _ => Step::Ok(request * 2),
    /// });
    /// ```
    pub fn by(step: impl Fn(usize, &Req) -> Step<Res> + Send + Sync + 'static) -> Self {
        Self::new(Script::By(Box::new(step)))
    }

    fn new(script: Script<Req, Res>) -> Self {
        let tool = Handle::new();
        let instance = tool.new_instance();
        Self {
            script: Arc::new(script),
            repeat_last: false,
            unready: None,
            tool,
            instance,
            permit: None,
        }
    }

    setters! {
        /// Repeats the last step of the script for every further call.
        fn then_repeat_last() { repeat_last = true }

        /// Fails in `poll_ready`, always.
        fn fails_readiness(cause: impl Into<crate::BoxError>) { unready = Some(Failure::new(cause)) }
    }

    /// Allows `n` instances to be ready or in flight at once; with 0 the tool is never ready.
    pub fn capacity(self, n: usize) -> Self {
        self.tool.lock().capacity = n;
        self
    }

    /// Keeps only counters, without a log of each attempt and request: for runs of millions of
    /// calls.
    pub fn unlogged(self) -> Self {
        self.tool.lock().logged = false;
        self
    }

    /// A handle to inspect the tool.
    pub fn handle(&self) -> Handle<Req> {
        self.tool.clone()
    }
}

impl<Req, Res: Clone> Scripted<Req, Res> {
    /// Fails `n` times with `cause`, then always responds with `response`.
    pub fn fails(n: usize, cause: impl Into<crate::BoxError>, response: Res) -> Self {
        let failure = Failure::new(cause);
        let failures = std::iter::repeat_n(Step::Err(failure), n);
        Self::script(failures.chain([Step::Ok(response)])).then_repeat_last()
    }

    fn step(&self, number: usize, request: &Req) -> Step<Res> {
        match &*self.script {
            Script::By(step) => step(number, request),
            Script::Steps(steps) => {
                let last = steps.last().filter(|_| self.repeat_last);
                steps.get(number).or(last).cloned().unwrap_or_else(|| {
                    self.tool.breach(Breach::ScriptOver);
                    panic!(
                        "call {number} is past the {} steps of the script: add steps or `then_repeat_last`",
                        steps.len()
                    );
                })
            }
        }
    }
}

impl<Req: Clone, Res: Clone> Service<Req> for Scripted<Req, Res> {
    type Response = Res;
    type Error = Failure;
    type Future = Playing<Req, Res>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if let Some(failure) = &self.unready {
            return Poll::Ready(Err(failure.clone()));
        }
        if self.permit.is_none() {
            let permit = self.tool.reserve(self.instance, cx.waker());
            self.permit = Some(ready!(permit.map_or(Poll::Pending, Poll::Ready)));
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let Some(mut permit) = self.permit.take() else {
            self.tool.breach(Breach::CalledUnready);
            panic!(
                "called without readiness: drive `poll_ready` of the same instance before `call`"
            );
        };
        let number = permit.start(&request);
        let step = self.step(number, &request);
        if let Step::PanicInCall = step {
            permit.end(End::Panicked);
            quiet_panic();
        }
        Playing::new(self.tool.clone(), permit, step)
    }
}

impl<Req, Res> Clone for Scripted<Req, Res> {
    // Readiness is per instance: a clone starts unready.
    fn clone(&self) -> Self {
        Self {
            script: self.script.clone(),
            repeat_last: self.repeat_last,
            unready: self.unready.clone(),
            tool: self.tool.clone(),
            instance: self.tool.new_instance(),
            permit: None,
        }
    }
}

impl<Req, Res> Drop for Scripted<Req, Res> {
    fn drop(&mut self) {
        self.tool.lock().waiters.remove(&self.instance);
    }
}

tr_core::debug_parts! { Scripted<Req, Res>, |it| ready = it.permit.is_some() }
