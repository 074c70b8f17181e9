//! Layers that leave something behind when their calls are dropped.
use super::{Inner, Made, boxed, caught, caught_by, laws, permitted, plain};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use tower::Service;
use tr_testkit::BoxError;
use tr_testkit::laws::Law;

/// Hands the call to a task, which goes on when the caller is gone.
fn detached(inner: Inner) -> Made<Inner> {
    plain(inner).calling(|inner, request| {
        let task = tokio::spawn(inner.call(request));
        boxed(async { task.await?.map_err(BoxError::from) })
    })
}

#[test]
fn a_dropped_call_goes_on() {
    let observed = "after 0 polls: 1 calls of the tool are still in flight";
    caught(Law::DropsCleanly, observed, detached);
    laws().detaches().check(detached);
}

#[test]
fn a_detached_call_never_ends() {
    let laws = laws().detaches();
    caught_by(&laws, Law::DropsCleanly, "1 calls of the tool are still in flight", |inner| {
        plain(inner).calling(|inner, request| {
            let mut call = Box::pin(inner.call(request));
            let (answer, answered) = tokio::sync::oneshot::channel();
            tokio::spawn(async move {
                let mut answer = Some(answer);
                poll_fn(|cx| {
                    if answer.as_ref().is_some_and(tokio::sync::oneshot::Sender::is_closed) {
                        return Poll::Pending; // forgets the tool, and keeps it
                    }
                    let end = std::task::ready!(call.as_mut().poll(cx));
                    let _ = answer.take().map(|answer| answer.send(end));
                    Poll::Ready(())
                })
                .await;
            });
            boxed(async { answered.await?.map_err(BoxError::from) })
        })
    });
}

#[test]
fn a_dropped_call_keeps_its_permit() {
    caught(Law::DropsCleanly, "after 0 polls: `poll_ready` stays Pending", |inner| {
        permitted(inner, 1).calling(|this, request| {
            this.held.take().unwrap().forget(); // given back by the end alone
            let (permits, call) = (this.permits.clone(), this.inner.call(request));
            boxed(async move {
                let end = call.await;
                permits.add_permits(1);
                end
            })
        })
    });
}

#[test]
fn a_dropped_call_leaves_its_waker() {
    struct Lists(Inner, Arc<Mutex<Vec<Waker>>>);
    caught(Law::DropsCleanly, "after 1 polls: its waker is still held", |inner| Made {
        state: Lists(inner, Arc::default()),
        poll_ready: |lists, cx| lists.0.poll_ready(cx).map_err(Into::into),
        call: |lists, request| {
            let (mut call, wakers) = (Box::pin(lists.0.call(request)), lists.1.clone());
            boxed(poll_fn(move |cx| {
                wakers.lock().unwrap().push(cx.waker().clone());
                call.as_mut().poll(cx)
            }))
        },
        clone: |lists| Lists(lists.0.clone(), lists.1.clone()),
    });
}

#[test]
fn a_dropped_wait_for_readiness_leaves_its_waker() {
    struct Lists(Inner, Arc<Mutex<Vec<Waker>>>);
    let observed = "while the tool was busy: its waker is still held";
    caught(Law::DropsCleanly, observed, |inner| Made {
        state: Lists(inner, Arc::default()),
        poll_ready: |lists, cx| {
            let poll = lists.0.poll_ready(cx);
            if poll.is_pending() {
                lists.1.lock().unwrap().push(cx.waker().clone());
            }
            poll.map_err(Into::into)
        },
        call: |lists, request| boxed(lists.0.call(request)),
        clone: |lists| Lists(lists.0.clone(), lists.1.clone()),
    });
}
