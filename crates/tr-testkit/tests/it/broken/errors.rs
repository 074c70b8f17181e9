//! Layers that lose errors.
use super::{Inner, Made, boxed, caught, plain};
use std::future::ready;
use std::task::Poll;
use tower::Service;
use tr_testkit::laws::Law;

#[test]
fn an_error_of_readiness_is_swallowed() {
    struct Covers(Inner, bool);
    caught(Law::SurfacesReadinessErrors, "failed to get ready, and the call got Ok(7)", |inner| {
        Made {
            state: Covers(inner, false),
            poll_ready: |covers, cx| {
                covers.1 = std::task::ready!(covers.0.poll_ready(cx)).is_err();
                Poll::Ready(Ok(()))
            },
            call: |covers, request| {
                if covers.1 { Box::pin(ready(Ok(7))) } else { boxed(covers.0.call(request)) }
            },
            clone: |covers| Covers(covers.0.clone(), false),
        }
    });
}

#[test]
fn an_error_of_readiness_is_waited_for_in_vain() {
    caught(Law::SurfacesReadinessErrors, "`poll_ready` stays Pending", |inner| {
        plain(inner).readying(|inner, cx| match inner.poll_ready(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        })
    });
}

#[test]
fn an_error_loses_its_source() {
    caught(Law::KeepsTheSource, "not among the sources of `it failed`", |inner| {
        plain(inner).calling(|inner, request| {
            let call = inner.call(request);
            Box::pin(async { call.await.map_err(|_| "it failed".into()) })
        })
    });
}

#[test]
fn an_error_becomes_a_success() {
    caught(Law::KeepsTheSource, "the tool failed, and the call got Ok(0)", |inner| {
        plain(inner).calling(|inner, request| {
            let call = inner.call(request);
            Box::pin(async { Ok(call.await.unwrap_or(0)) })
        })
    });
}
