//! A layer for each way of breaking a law, and each is caught for what it breaks.

use std::{
    convert::Infallible,
    future::{Future, poll_fn, ready},
    mem,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Service, ServiceExt};
use tr_testkit::{
    BoxError,
    laws::{Law, Laws},
    tool::Scripted,
};

type Inner = Scripted<u64, u64>;
type Boxed = Pin<Box<dyn Future<Output = Result<u64, BoxError>>>>;

/// A service made of a state and two functions over it: its whole behaviour stands in the test that breaks it.
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
#[should_panic(
    expected = "law CallsWhatIsReady: it called the tool on an instance that was not ready"
)]
fn check_panics_with_the_law_and_what_was_seen() {
    laws().check(|inner| plain(inner).readying(|_, _| Poll::Ready(Ok(()))));
}

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
    caught(Law::ClonesEarnReadiness, "the layer panicked: nothing was reserved", |inner| Made {
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
    caught(Law::WakesUp, "`poll_ready` was not woken when the tool got free", |inner| {
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
    caught(Law::DoesNotSpin, "it had itself polled 10 times for 0 wake-ups", |inner| {
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
    caught(Law::DoesNotSpin, "it polled the tool 37 times for 3 wake-ups", |inner| {
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
