//! Layers that a panic breaks, and layers that answer wrongly.
use super::{Inner, Made, boxed, caught, permitted, plain};
use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use tower::Service;
use tr_testkit::BoxError;
use tr_testkit::laws::Law;

/// A lock held while the tool's code runs is poisoned by its panic.
#[test]
fn a_panic_poisons_a_lock() {
    struct Locks(Inner, Arc<Mutex<()>>);
    caught(Law::SurvivesPanics, "the layer panicked", |inner| Made {
        state: Locks(inner, Arc::default()),
        poll_ready: |locks, cx| locks.0.poll_ready(cx).map_err(Into::into),
        call: |locks, request| {
            let _guard = locks.1.lock().unwrap();
            boxed(locks.0.call(request))
        },
        clone: |locks| Locks(locks.0.clone(), locks.1.clone()),
    });
}

#[test]
fn a_panic_costs_a_permit() {
    let observed = "after a panic in the tool's future: `poll_ready` stays Pending";
    caught(Law::SurvivesPanics, observed, |inner| {
        permitted(inner, 1).calling(|this, request| {
            this.held.take().unwrap().forget(); // given back by the end, or by being dropped alive
            let (permits, mut call) = (this.permits.clone(), Box::pin(this.inner.call(request)));
            boxed(poll_fn(move |cx| {
                let end = std::task::ready!(call.as_mut().poll(cx));
                permits.add_permits(1);
                Poll::Ready(end)
            }))
        })
    });
}

#[test]
fn answers_are_crossed() {
    struct Cell(Inner, Arc<Mutex<Option<u64>>>);
    caught(Law::KeepsAnswersApart, "its own answer is", |inner| Made {
        state: Cell(inner, Arc::default()),
        poll_ready: |cell, cx| cell.0.poll_ready(cx).map_err(Into::into),
        call: |cell, request| {
            *cell.1.lock().unwrap() = Some(request);
            let (call, cell) = (cell.0.call(request), cell.1.clone());
            boxed(async move {
                call.await?;
                let latest = cell.lock().unwrap().unwrap();
                Ok::<_, BoxError>(latest * latest)
            })
        },
        clone: |cell| Cell(cell.0.clone(), cell.1.clone()),
    });
}

/// Even a layer that never calls the tool is held to the answers.
#[test]
fn a_constant_is_no_answer() {
    caught(Law::KeepsAnswersApart, "its own answer is", |inner| {
        plain(inner).calling(|_, _| boxed(ready(Ok::<_, Infallible>(u64::MAX))))
    });
}
