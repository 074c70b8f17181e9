//! Layers that wake or poll wrongly.
use super::{boxed, caught, plain};
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, Waker};
use tower::Service;
use tr_testkit::laws::Law;

#[test]
fn the_first_waker_is_kept() {
    caught(Law::WakesUp, "polled with changing wakers: a call hangs", |inner| {
        plain(inner).calling(|inner, request| {
            let mut call = Box::pin(inner.call(request));
            let mut first = None;
            boxed(poll_fn(move |cx| {
                let waker = first.get_or_insert_with(|| cx.waker().clone());
                call.as_mut().poll(&mut Context::from_waker(waker))
            }))
        })
    });
}

#[test]
fn nobody_is_woken_when_the_tool_gets_free() {
    caught(Law::WakesUp, "`poll_ready` was not woken when the tool had capacity", |inner| {
        plain(inner).readying(|inner, _| {
            inner.poll_ready(&mut Context::from_waker(Waker::noop())).map_err(Into::into)
        })
    });
}

#[test]
fn it_wakes_itself_all_the_time() {
    caught(Law::DoesNotSpin, "a call was woken 1000 times and has not ended", |inner| {
        plain(inner).calling(|inner, request| {
            let mut call = Box::pin(inner.call(request));
            boxed(poll_fn(move |cx| {
                cx.waker().wake_by_ref();
                call.as_mut().poll(cx)
            }))
        })
    });
}

#[test]
fn it_wakes_itself_a_little_too_often() {
    caught(Law::DoesNotSpin, "the call was polled 10 times for 0 wake-ups of the tool", |inner| {
        plain(inner).calling(|inner, request| {
            let call = inner.call(request);
            boxed(async {
                for _ in 0..9 {
                    let mut woken = false;
                    poll_fn(|cx| {
                        if mem::replace(&mut woken, true) {
                            return Poll::Ready(());
                        }
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                }
                call.await
            })
        })
    });
}

#[test]
fn it_polls_the_tool_again_and_again() {
    caught(Law::DoesNotSpin, "the call polled the tool 37 times for 3 wake-ups", |inner| {
        plain(inner).calling(|inner, request| {
            let mut call = Box::pin(inner.call(request));
            boxed(poll_fn(move |cx| {
                let mut polls = 0..12;
                polls
                    .find_map(|_| match call.as_mut().poll(cx) {
                        Poll::Ready(end) => Some(Poll::Ready(end)),
                        Poll::Pending => None,
                    })
                    .unwrap_or(Poll::Pending)
            }))
        })
    });
}

#[test]
fn the_tool_is_polled_after_its_end() {
    caught(Law::PollsNothingAfterItsEnd, "it polled the tool's future after its end", |inner| {
        plain(inner).calling(|inner, request| {
            let mut call = Box::pin(inner.call(request));
            boxed(poll_fn(move |cx| match call.as_mut().poll(cx) {
                Poll::Ready(_) => call.as_mut().poll(cx),
                Poll::Pending => Poll::Pending,
            }))
        })
    });
}
