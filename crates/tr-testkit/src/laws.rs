//! The contract laws of `tower_service::Service`, checked for any layer.
//!
//! # When to use
//!
//! In one `#[test]` per layer and relevant configuration. Each [`Law`] puts the layer around a
//! strict [`Scripted`] tool, on its own paused runtime, and observes it from both sides. Give the
//! layer small capacities, so that leaks show, and timeouts longer than a few milliseconds of
//! tokio's time, which the tool takes to respond.
//!
//! # Example
//!
//! ```
//! use tower::limit::ConcurrencyLimit;
//! use tr_testkit::laws::Laws;
//!
//! // Requests are numbered; distinct numbers make distinct requests, and the tool answers with the square.
//! Laws::new(|n| n, |request: &u64| request * request)
//!     .check(|inner| ConcurrencyLimit::new(inner, 1));
//! ```
//!
//! The closure is called for each law (and inside its runtime, so it may spawn). For a layer that
//! changes the type of the response, map it back to the tool's with `tower::util::MapResponse`.
//!
//! # What a layer may do
//!
//! Respond without calling the tool; call it several times; wait for its readiness in the response
//! future instead of in `poll_ready`; poll slightly more often than needed. Declare any other
//! deviation: [`detaches`](Laws::detaches), [`maps_errors`](Laws::maps_errors),
//! [`except`](Laws::except).
//!
//! # Panics
//!
//! [`Laws::check`] panics with one line for each broken law, its name and the observation; panics on the way there,
//! which laws provoke, are not printed. It also
//! panics inside a runtime: call it from a plain `#[test]`. The clock is paused, so the layer's
//! timers fire before real sockets and threads reply: check such layers with `except`, or with an
//! in-memory engine. If the layer spawns a task that wakes itself forever, the clock does not
//! advance, and the test hangs.

mod calls;
mod law;
mod readiness;
mod scene;

pub use self::law::{Broken, Law};

use self::scene::{Scene, Subject};
use crate::{
    BoxError,
    tool::{Breach, Scripted},
};
use std::{
    cell::{Cell, RefCell},
    fmt,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::{Arc, Once},
};
use tower_service::Service;
use tr_core::setters;

/// The laws for a layer, and which of them it breaks on purpose.
pub struct Laws<Req, Res> {
    subject: Subject<Req, Res>,
    except: Vec<Law>,
}

impl<Req, Res> Laws<Req, Res>
where
    Req: Clone + Send + 'static,
    Res: Clone + fmt::Debug + Send + 'static,
{
    /// All laws, for a tool that answers the `n`th request with `response(&request(n))`.
    ///
    /// Distinct numbers should make distinct requests with distinct responses, to detect mixed-up
    /// responses.
    pub fn new(
        request: impl Fn(u64) -> Req + 'static,
        response: impl Fn(&Req) -> Res + Send + Sync + 'static,
    ) -> Self
    where
        Res: PartialEq,
    {
        Self::compared_by(request, response, Res::eq)
    }

    /// Like [`new`](Self::new), for responses without `PartialEq`, compared by `same`.
    pub fn compared_by(
        request: impl Fn(u64) -> Req + 'static,
        response: impl Fn(&Req) -> Res + Send + Sync + 'static,
        same: impl Fn(&Res, &Res) -> bool + 'static,
    ) -> Self {
        Self {
            subject: Subject {
                request: Box::new(request),
                response: Arc::new(response),
                same: Box::new(same),
                next: Cell::new(0),
                detaches: false,
                maps_errors: false,
            },
            except: Vec::new(),
        }
    }

    setters! {
        /// Declares that the layer runs a dropped call to its end: the call may go on, but must end.
        fn detaches() { subject.detaches = true }

        /// Declares that the layer's errors do not lead to the tool's by `source()`; they must still be
        /// errors.
        fn maps_errors() { subject.maps_errors = true }

        /// Declares that the layer breaks `law`; its documentation has to say why.
        fn except(law: Law) { except.push(law) }
    }

    /// Checks every law.
    ///
    /// # Panics
    ///
    /// If a law is broken, with a line for each; and inside a runtime.
    pub fn check<S>(&self, layer: impl Fn(Scripted<Req, Res>) -> S)
    where
        S: Service<Req, Response = Res, Error: Into<BoxError>> + Clone,
    {
        let broken: Vec<String> = self.broken(layer).iter().map(ToString::to_string).collect();
        assert!(
            broken.is_empty(),
            "the layer breaks the contract of `Service`:\n{}",
            broken.join("\n")
        );
    }

    /// The laws that the layer breaks, each once: for reports, and to test that a broken layer is caught.
    ///
    /// # Panics
    ///
    /// Inside a runtime.
    pub fn broken<S>(&self, layer: impl Fn(Scripted<Req, Res>) -> S) -> Vec<Broken>
    where
        S: Service<Req, Response = Res, Error: Into<BoxError>> + Clone,
    {
        let mut broken: Vec<Broken> = Vec::new();
        for law in Law::ALL {
            for found in self.try_law(law, &layer) {
                if broken.iter().all(|b| b.law != found.law) {
                    broken.push(found);
                }
            }
        }
        broken
    }

    fn try_law<S>(&self, law: Law, layer: &impl Fn(Scripted<Req, Res>) -> S) -> Vec<Broken>
    where
        S: Service<Req, Response = Res, Error: Into<BoxError>> + Clone,
    {
        if self.except.contains(&law) {
            return Vec::new();
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime on this thread");
        let scene = Scene::new(&self.subject, layer);
        let play = async {
            match law {
                Law::ReadyStaysReady => scene.ready_stays_ready().await,
                Law::CallsWhatIsReady => scene.calls_what_is_ready().await,
                Law::ReleasesOnDrop => scene.releases_on_drop().await,
                Law::ClonesEarnReadiness => scene.clones_earn_readiness().await,
                Law::SurfacesReadinessErrors => scene.surfaces_readiness_errors().await,
                Law::KeepsTheSource => scene.keeps_the_source().await,
                Law::DropsCleanly => scene.drops_cleanly().await,
                Law::WakesUp => scene.wakes_up().await,
                Law::DoesNotSpin => scene.does_not_spin().await,
                Law::PollsNothingAfterItsEnd => scene.polls_nothing_after_its_end().await,
                Law::SurvivesPanics => scene.survives_panics().await,
                Law::KeepsAnswersApart => scene.keeps_answers_apart().await,
            }
        };
        let end = quietly(|| {
            let end = runtime.block_on(play);
            drop(runtime); // detached calls end here, and may break a law by that
            end
        });

        // The tool observed the first fault; its consequences are not reported. One that is declared hides nothing.
        let breaches = scene.breaches().into_iter().map(Broken::from);
        let breaches: Vec<_> = breaches.filter(|it| !self.except.contains(&it.law)).collect();
        if !breaches.is_empty() {
            return breaches;
        }
        match end {
            Ok(Ok(())) => Vec::new(),
            Ok(Err(observed)) => vec![Broken { law, observed }],
            Err(observed) => vec![Broken { law, observed }],
        }
    }
}

impl From<Breach> for Broken {
    fn from(breach: Breach) -> Self {
        let (law, observed) = match breach {
            Breach::CalledUnready => {
                (Law::CallsWhatIsReady, "it called the tool on an instance that was not ready")
            }
            Breach::PolledAfterEnd => {
                (Law::PollsNothingAfterItsEnd, "it polled the tool's future after its end")
            }
            Breach::ScriptOver => unreachable!("the laws' tools decide each call"),
        };
        Self { law, observed: observed.into() }
    }
}

thread_local! {
    /// The last panic of this thread, while its panics are not printed.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Plays a scene without printing the panics that it expects or reports; the error is the panic that ended it.
fn quietly<T>(scene: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| match IS_QUIET.get() {
            true => PANIC.set(Some(info.to_string().replace('\n', " "))),
            false => print(info),
        }));
    });
    IS_QUIET.set(true);
    let end = catch_unwind(AssertUnwindSafe(scene));
    IS_QUIET.set(false);
    end.map_err(|_| format!("the layer {}", PANIC.take().unwrap_or_else(|| "panicked".into())))
}

tr_core::debug_parts! { Laws<Req, Res>, |it|
    detaches = it.subject.detaches,
    maps_errors = it.subject.maps_errors,
    except = it.except
}
