//! The laws of calls: polling, waking, responding, failing and being dropped.

use super::scene::{SPIN, Scene, TICK, Verdict, ensure, poll_ready_once};
use crate::{
    BoxError,
    drive::{Driven, End, PATIENCE},
    tool::{Failure, Handle, Step},
};
use futures_util::future::{try_join, try_join_all};
use std::{
    error::Error,
    fmt,
    future::poll_fn,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
    task::Poll,
};
use tokio::time::sleep;
use tower_service::Service;

/// The polls that one wake-up of the tool may cause before they count as a busy loop.
const POLLS_PER_WAKE: usize = 8;

/// The number of concurrent calls.
const CROWD: usize = 16;

/// The wake-ups that the tool needs to respond.
const TICKS: usize = 3;

impl<Req, Res, S> Scene<'_, Req, Res, S>
where
    Req: Clone + Send + 'static,
    Res: Clone + fmt::Debug + Send + 'static,
    S: Service<Req, Response = Res, Error: Into<BoxError>> + Clone,
{
    pub(super) async fn wakes_up(&self) -> Verdict {
        self.wakes_the_last_waker().await?;
        self.wakes_when_the_tool_is_free().await
    }

    async fn wakes_the_last_waker(&self) -> Verdict {
        let mut service = self.layered(self.tool(|_| 3));
        let _ = self.ready(&mut service).await?;
        let (request, response) = self.request();
        let mut call = Driven::new(service.call(request)).with_decoy();
        let answer = self.end_of(&mut call).await;
        self.is_own(
            &answer.map_err(|seen| format!("polled with changing wakers: {seen}"))?,
            &response,
        )
    }

    async fn wakes_when_the_tool_is_free(&self) -> Verdict {
        let tool = self.tool(|_| 1).capacity(1);
        let mut rival = tool.clone();
        let mut service = self.layered(tool);
        let _ = poll_ready_once(&mut rival);
        let waiting = async {
            let mut readiness = Driven::new(poll_fn(|cx| service.poll_ready(cx))).with_decoy();
            let woken = readiness.run(SPIN).await;
            ensure!(
                matches!(woken, End::Finished(_)),
                "`poll_ready` was not woken when the tool had capacity"
            );
            drop(readiness);
            self.answers_when_called(&mut service).await
        };
        let freeing = async {
            sleep(5 * TICK).await;
            drop(rival);
            Ok(())
        };
        try_join(waiting, freeing).await.map(drop)
    }

    pub(super) async fn does_not_spin(&self) -> Verdict {
        for ticks in [0, 3, 30] {
            let tool = self.tool(move |_| ticks);
            let asked = tool.handle();
            let mut service = self.layered(tool);
            let _ = self.ready(&mut service).await?;
            let mut call = Driven::new(service.call(self.request().0));
            let _ = self.end_of(&mut call).await?;

            let most = POLLS_PER_WAKE * (ticks + 1);
            let polls = call.polls;
            ensure!(
                polls <= most,
                "the call was polled {polls} times for {ticks} wake-ups of the tool"
            );
            for polls in asked.attempts().iter().map(|a| a.polls) {
                ensure!(
                    polls <= most,
                    "the call polled the tool {polls} times for {ticks} wake-ups"
                );
            }
        }
        Ok(())
    }

    /// The tool itself detects a breach of this law.
    pub(super) async fn polls_nothing_after_its_end(&self) -> Verdict {
        for ticks in 0..3 {
            self.answers(&mut self.layered(self.tool(move |_| ticks))).await?;
        }
        Ok(())
    }

    pub(super) async fn keeps_answers_apart(&self) -> Verdict {
        // The first called answers last.
        let base = self.layered(self.tool(|n| 1 + CROWD.saturating_sub(n)));
        let mut crowd: Vec<S> = (0..CROWD).map(|_| base.clone()).collect();
        try_join_all(crowd.iter_mut().map(|one| self.answers(one))).await.map(drop)
    }

    pub(super) async fn drops_cleanly(&self) -> Verdict {
        let tool = self.tool(|_| TICKS).capacity(1);
        let asked = tool.handle();
        let mut rival = tool.clone();
        let base = self.layered(tool);

        for polls in 0.. {
            let (ended, end) = self.drop_after(polls, &base, &asked).await?;
            end.map_err(|seen| format!("a call was dropped after {polls} polls: {seen}"))?;
            if ended {
                break;
            }
        }

        for polls in 0..=2 {
            // The tool is busy: the call is dropped while it waits for readiness, outside or inside
            // the layer.
            ensure!(
                poll_ready_once(&mut rival).is_ready(),
                "the tool's capacity did not come back"
            );
            let end = async {
                self.drop_unready(polls, &base, &asked).await?;
                rival = rival.clone(); // drops the ready instance
                self.works_on(&base, &asked).await
            };
            end.await.map_err(|seen| {
                format!("a call was dropped after {polls} polls while the tool was busy: {seen}")
            })?;
        }
        Ok(())
    }

    /// Drops a call after this many polls; returns whether it had ended before that, and whether
    /// the law holds.
    async fn drop_after(
        &self,
        polls: usize,
        base: &S,
        asked: &Handle<Req>,
    ) -> Result<(bool, Verdict), String> {
        let mut service = base.clone();
        let _ = self.ready(&mut service).await?;
        let mut call = Driven::new(service.call(self.request().0));
        drop(service);
        let end = call.run(polls).await;
        ensure!(
            !matches!(end, End::Stuck),
            "a call hangs: its task was not woken although the tool made progress"
        );
        let wakers = call.abandon();
        let works = async {
            self.is_idle(asked).await?;
            ensure!(wakers.strong_count() == 0, "its waker is still held");
            self.answers(&mut base.clone()).await
        };
        Ok((matches!(end, End::Finished(_)), works.await))
    }

    async fn drop_unready(&self, polls: usize, base: &S, asked: &Handle<Req>) -> Verdict {
        let mut service = base.clone();
        let mut readiness = Driven::new(poll_fn(|cx| service.poll_ready(cx)));
        let ready = matches!(readiness.run(polls).await, End::Finished(Ok(())));
        let mut wakers = vec![readiness.abandon()];
        if ready {
            let mut call = Driven::new(service.call(self.request().0));
            let _ = call.run(polls).await;
            wakers.push(call.abandon());
        }
        drop(service);
        if self.subject.detaches {
            return Ok(()); // a detached call keeps waiting, with its own wakers
        }
        ensure!(wakers.iter().all(|waker| waker.strong_count() == 0), "its waker is still held");
        ensure!(asked.waiting() == 0, "the tool still has to wake it");
        Ok(())
    }

    async fn works_on(&self, base: &S, asked: &Handle<Req>) -> Verdict {
        self.is_idle(asked).await?;
        self.answers(&mut base.clone()).await
    }

    pub(super) async fn keeps_the_source(&self) -> Verdict {
        let tool = self.tool_that(|_| Some(Step::after(TICK, Step::err("the tool fails"))));
        let asked = tool.handle();
        let mut service = self.layered(tool);
        let _ = self.ready(&mut service).await?;
        let answer = self.end(service.call(self.request().0)).await?;
        if asked.calls() == 0 {
            return Ok(()); // it responded without the tool, so there is no source
        }
        let Err(error) = answer else {
            return Err(format!("the tool failed, and the call got {answer:?}"));
        };
        let first: &(dyn Error + 'static) = &*error;
        let mut causes = iter::successors(Some(first), |cause| (*cause).source());
        ensure!(
            self.subject.maps_errors || causes.any(<dyn Error>::is::<Failure>),
            "the tool's error is not among the sources of `{error}`"
        );
        Ok(())
    }

    pub(super) async fn survives_panics(&self) -> Verdict {
        for (what, step) in [
            ("future", Step::after(TICK, Step::Panic)),
            ("future's first poll", Step::Panic),
            ("call", Step::PanicInCall),
        ] {
            // Threads share a script, but a response need not be `Sync`.
            let step = Mutex::new(Some(step));
            let tool = self.tool_that(move |_| step.lock().ok()?.take()).capacity(1);
            let asked = tool.handle();
            let base = self.layered(tool);
            self.call_that_panics(&mut base.clone()).await;
            self.works_on(&base, &asked)
                .await
                .map_err(|observed| format!("after a panic in the tool's {what}: {observed}"))?;
        }
        Ok(())
    }

    /// The layer may pass the panic on or turn it into an error.
    async fn call_that_panics(&self, service: &mut S) {
        let Ok(Ok(())) = self.ready(service).await else { return };
        let request = self.request().0;
        let Ok(call) = catch_unwind(AssertUnwindSafe(|| service.call(request))) else { return };
        let mut call = Driven::new(call);
        let end = poll_fn(|cx| {
            let poll = catch_unwind(AssertUnwindSafe(|| call.poll_within(cx, SPIN)));
            match poll {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(_)) | Err(_) => Poll::Ready(()),
            }
        });
        let _ = tokio::time::timeout(PATIENCE, end).await;
    }
}
