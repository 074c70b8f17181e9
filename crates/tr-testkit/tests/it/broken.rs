//! A layer for each way of breaking a law, and each is caught for what it breaks.

mod answers;
mod capacity;
mod drops;
mod errors;
mod readiness;
mod wakes;

use std::env;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;
use tr_testkit::BoxError;
use tr_testkit::laws::{Law, Laws};
use tr_testkit::tool::Scripted;

type Inner = Scripted<u64, u64>;
type Boxed = Pin<Box<dyn Future<Output = Result<u64, BoxError>>>>;

/// A service made of a state and two functions over it: its whole behavior stands in the test that breaks it.
struct Made<T> {
    state: T,
    poll_ready: fn(&mut T, &mut Context<'_>) -> Poll<Result<(), BoxError>>,
    call: fn(&mut T, u64) -> Boxed,
    clone: fn(&T) -> T,
}

impl<T> Made<T> {
    fn readying(mut self, f: fn(&mut T, &mut Context<'_>) -> Poll<Result<(), BoxError>>) -> Self {
        self.poll_ready = f;
        self
    }

    fn calling(mut self, f: fn(&mut T, u64) -> Boxed) -> Self {
        self.call = f;
        self
    }
}

impl<T> Service<u64> for Made<T> {
    type Response = u64;
    type Error = BoxError;
    type Future = Boxed;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        (self.poll_ready)(&mut self.state, cx)
    }

    fn call(&mut self, request: u64) -> Boxed {
        (self.call)(&mut self.state, request)
    }
}

impl<T> Clone for Made<T> {
    fn clone(&self) -> Self {
        Self { state: (self.clone)(&self.state), ..*self }
    }
}

/// Passes everything on; each broken layer differs from it in one place.
fn plain(inner: Inner) -> Made<Inner> {
    Made {
        state: inner,
        poll_ready: |inner, cx| inner.poll_ready(cx).map_err(Into::into),
        call: |inner, request| boxed(inner.call(request)),
        clone: Inner::clone,
    }
}

fn boxed<E: Into<BoxError>>(call: impl Future<Output = Result<u64, E>> + 'static) -> Boxed {
    Box::pin(async { call.await.map_err(Into::into) })
}

fn laws() -> Laws<u64, u64> {
    Laws::new(|n| n, |request: &u64| request * request)
}

struct Permitted {
    inner: Inner,
    permits: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

/// Refuses to get ready without a permit; wakes nobody who waits for one.
fn permitted(inner: Inner, permits: usize) -> Made<Permitted> {
    Made {
        state: Permitted { inner, permits: Arc::new(Semaphore::new(permits)), held: None },
        poll_ready: |this, cx| {
            if this.held.is_none() {
                let Ok(permit) = this.permits.clone().try_acquire_owned() else {
                    return Poll::Pending;
                };
                this.held = Some(permit);
            }
            this.inner.poll_ready(cx).map_err(Into::into)
        },
        call: |this, request| {
            let held = this.held.take();
            let call = this.inner.call(request);
            boxed(async move {
                let _held = held;
                call.await
            })
        },
        clone: |this| Permitted {
            inner: this.inner.clone(),
            permits: this.permits.clone(),
            held: None,
        },
    }
}

/// The layer breaks this law, and the observation says so.
#[track_caller]
fn caught<T>(law: Law, observed: &str, layer: impl Fn(Inner) -> Made<T>) {
    caught_by(&laws(), law, observed, layer);
}

#[track_caller]
fn caught_by<T>(laws: &Laws<u64, u64>, law: Law, observed: &str, layer: impl Fn(Inner) -> Made<T>) {
    let broken = laws.broken(layer);
    let found = broken.iter().find(|b| b.law == law);
    let found = found.unwrap_or_else(|| panic!("{law:?} was not caught, but {broken:?}"));
    assert!(found.observed.contains(observed), "{found}");
}

#[test]
fn the_plain_layer_is_good() {
    laws().check(plain);
}

#[test]
fn check_prints_one_line_for_a_broken_law_and_no_panic_but_its_own() {
    const BREAKS: &str = "TR_BREAKS_A_LAW";
    if env::var_os(BREAKS).is_some() {
        return laws().check(|inner| plain(inner).readying(|_, _| Poll::Ready(Ok(()))));
    }
    let test = "broken::check_prints_one_line_for_a_broken_law_and_no_panic_but_its_own";
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(BREAKS, "1").env("RUST_BACKTRACE", "0");
    let printed = String::from_utf8(child.output().unwrap().stderr).unwrap();
    let laws: Vec<_> = printed.lines().filter(|line| line.starts_with("law ")).collect();
    let seen = "law CallsWhatIsReady: it called the tool on an instance that was not ready";
    assert_eq!(laws, [seen], "{printed}");
    assert_eq!(printed.matches("panicked at").count(), 1, "{printed}");
}
