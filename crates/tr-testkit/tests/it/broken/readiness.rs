//! Layers that get readiness wrong.
use super::{Inner, Made, boxed, caught, laws, plain};
use std::mem;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::Semaphore;
use tower::{Service, ServiceExt};
use tr_testkit::BoxError;
use tr_testkit::laws::Law;

#[test]
fn ready_turns_back() {
    // Asks a fresh clone each time, whose reservation is gone with it.
    caught(Law::ReadyStaysReady, "it turned back to Pending", |inner| {
        plain(inner)
            .readying(|inner, cx| inner.clone().poll_ready(cx).map_err(Into::into))
            .calling(|inner, request| boxed(inner.clone().oneshot(request)))
    });
}

#[test]
fn ready_is_forgotten_by_the_second_poll() {
    struct Once(Inner, bool);
    caught(Law::ReadyStaysReady, "the next poll returned Pending", |inner| Made {
        state: Once(inner, false),
        poll_ready: |once, cx| {
            if mem::take(&mut once.1) {
                return Poll::Pending;
            }
            let poll = once.0.poll_ready(cx).map_err(Into::into);
            once.1 = poll.is_ready();
            poll
        },
        call: |once, request| {
            once.1 = false;
            boxed(once.0.call(request))
        },
        clone: |once| Once(once.0.clone(), false),
    });
}

#[test]
fn its_own_capacity_is_looked_at_and_not_taken() {
    struct Looks(Inner, Arc<Semaphore>);
    caught(Law::ReadyStaysReady, "it turned back to Pending", |inner| Made {
        state: Looks(inner, Arc::new(Semaphore::new(1))),
        poll_ready: |looks, cx| match looks.1.available_permits() {
            0 => Poll::Pending,
            _ => looks.0.poll_ready(cx).map_err(Into::into),
        },
        call: |looks, request| {
            let permit = looks.1.clone().try_acquire_owned();
            let call = looks.0.call(request);
            boxed(async move {
                let _permit = permit?;
                call.await.map_err(BoxError::from)
            })
        },
        clone: |looks| Looks(looks.0.clone(), looks.1.clone()),
    });
}

#[test]
fn the_clone_is_called_instead_of_the_ready_original() {
    let unready = "it called the tool on an instance that was not ready";
    caught(Law::CallsWhatIsReady, unready, |inner| {
        plain(inner).calling(|inner, request| {
            let mut clone = inner.clone();
            Box::pin(async move { clone.call(request).await.map_err(Into::into) })
        })
    });
}

#[test]
fn a_retry_calls_again_without_asking() {
    let unready = "it called the tool on an instance that was not ready";
    caught(Law::CallsWhatIsReady, unready, |inner| {
        plain(inner).calling(|inner, request| {
            let first = inner.call(request);
            let mut again = inner.clone();
            Box::pin(async move {
                match first.await {
                    Ok(response) => Ok(response),
                    Err(_) => again.call(request).await.map_err(Into::into),
                }
            })
        })
    });
}

/// What is declared hides nothing else.
#[test]
fn a_second_broken_law_is_seen_behind_an_excepted_one() {
    let both = |inner| {
        plain(inner).readying(|_, _| Poll::Ready(Ok(()))).calling(|inner, request| {
            let call = inner.call(request);
            boxed(async { call.await.map(|answer| answer + 1) })
        })
    };
    let broken = laws().except(Law::CallsWhatIsReady).broken(both);
    assert!(broken.iter().any(|b| b.law == Law::KeepsAnswersApart), "{broken:?}");
    assert!(broken.iter().all(|b| b.law != Law::CallsWhatIsReady), "{broken:?}");
}
