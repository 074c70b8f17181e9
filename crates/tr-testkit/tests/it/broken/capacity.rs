//! Layers that keep capacity, or share what is not theirs.
use super::{Inner, Made, boxed, caught, permitted};
use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::Semaphore;
use tower::Service;
use tr_testkit::laws::Law;

#[test]
fn a_dropped_service_keeps_its_permit() {
    caught(Law::ReleasesOnDrop, "`poll_ready` stays Pending", |inner| {
        permitted(inner, 2)
            .readying(|this, cx| {
                if this.held.is_none() {
                    let Ok(permit) = this.permits.try_acquire() else { return Poll::Pending };
                    permit.forget(); // given back by `call` alone
                    let empty = Arc::new(Semaphore::new(0));
                    this.held = empty.try_acquire_many_owned(0).ok();
                }
                this.inner.poll_ready(cx).map_err(Into::into)
            })
            .calling(|this, request| {
                this.held = None;
                this.permits.add_permits(1);
                boxed(this.inner.call(request))
            })
    });
}

#[test]
fn a_dropped_service_leaves_the_tool_reserved() {
    struct Parks(Option<Inner>, Arc<Mutex<Vec<Inner>>>);
    impl Drop for Parks {
        fn drop(&mut self) {
            self.1.lock().unwrap().extend(self.0.take());
        }
    }
    caught(Law::ReleasesOnDrop, "a dropped service keeps the tool's capacity", |inner| Made {
        state: Parks(Some(inner), Arc::default()),
        poll_ready: |parks, cx| parks.0.as_mut().unwrap().poll_ready(cx).map_err(Into::into),
        call: |parks, request| boxed(parks.0.as_mut().unwrap().call(request)),
        clone: |parks| Parks(parks.0.clone(), parks.1.clone()),
    });
}

#[test]
fn whoever_waits_for_the_permit_is_not_woken() {
    caught(Law::ReleasesOnDrop, "was not woken when a ready one was dropped", |inner| {
        permitted(inner, 1)
    });
}

#[test]
fn a_clone_inherits_readiness() {
    #[derive(Clone)]
    struct Remembers(Inner, bool);
    let broken = |inner| Made {
        state: Remembers(inner, false),
        poll_ready: |this: &mut Remembers, cx: &mut Context<'_>| {
            if !this.1 {
                std::task::ready!(this.0.poll_ready(cx))?;
                this.1 = true;
            }
            Poll::Ready(Ok(()))
        },
        call: |this: &mut Remembers, request| {
            this.1 = false;
            boxed(this.0.call(request))
        },
        clone: Remembers::clone,
    };
    caught(Law::CallsWhatIsReady, "not ready", broken);
}

#[test]
fn a_clone_shares_its_originals_permit() {
    #[derive(Clone)]
    struct Shares(Inner, Arc<Mutex<bool>>);
    caught(Law::ClonesEarnReadiness, "nothing was reserved", |inner| Made {
        state: Shares(inner, Arc::default()),
        poll_ready: |this, cx| {
            *this.1.lock().unwrap() = true;
            this.0.poll_ready(cx).map_err(Into::into)
        },
        call: |this, request| {
            assert!(mem::take(&mut *this.1.lock().unwrap()), "nothing was reserved");
            boxed(this.0.call(request))
        },
        clone: Shares::clone,
    });
}
