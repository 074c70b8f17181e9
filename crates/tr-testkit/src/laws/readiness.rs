//! The laws of readiness.

use super::scene::{SPIN, Scene, TICK, Verdict, ensure, poll_ready_once};
use crate::{
    BoxError,
    drive::{Driven, End},
    tool::Step,
};
use futures_util::future::try_join;
use std::{
    fmt,
    future::poll_fn,
    task::{Context, Poll, Waker},
};
use tokio::time::sleep;
use tower_service::Service;

/// Reservations made and dropped in a row: more than the capacity of a layer under test.
const LEAK_ROUNDS: usize = 64;

impl<Req, Res, S> Scene<'_, Req, Res, S>
where
    Req: Clone + Send + 'static,
    Res: Clone + fmt::Debug + Send + 'static,
    S: Service<Req, Response = Res, Error: Into<BoxError>> + Clone,
{
    pub(super) async fn ready_stays_ready(&self) -> Verdict {
        for capacity in [1, 2] {
            let tool = self.tool(|_| 1).capacity(capacity);
            let mut rival = tool.clone();
            let mut service = self.layered(tool);
            let mut other = service.clone();
            let _ = self.ready(&mut service).await?;
            ensure!(poll_ready_once(&mut service).is_ready(), "the next poll returned Pending");

            // Other instances take the capacity that the layer has not reserved, of the tool and of
            // its own.
            let mut other_call = None;
            if let Poll::Ready(Ok(())) = poll_ready_once(&mut other) {
                let mut call = Box::pin(other.call(self.request().0));
                let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                other_call = Some(call);
            }
            let _ = poll_ready_once(&mut rival);
            ensure!(
                poll_ready_once(&mut service).is_ready(),
                "it turned back to Pending when another instance took the capacity"
            );

            drop((rival, other, other_call));
            self.answers_when_called(&mut service).await?;
        }
        Ok(())
    }

    pub(super) async fn calls_what_is_ready(&self) -> Verdict {
        // One after the other on one instance.
        let mut service = self.layered(self.tool(|_| 1));
        self.answers(&mut service).await?;
        self.answers(&mut service).await?;

        // The second while the first is in flight.
        let mut service = self.layered(self.tool(|_| 3));
        let _ = self.ready(&mut service).await?;
        let (request, response) = self.request();
        let first = service.call(request);
        let first = async { self.is_own(&self.end(first).await?, &response) };
        try_join(first, self.answers(&mut service)).await?;

        // A first failure may cause a second call of the tool.
        let fails_once = |n| (n == 0).then(|| Step::err("the first call fails"));
        let mut service = self.layered(self.tool_that(fails_once));
        let _ = self.ready(&mut service).await?;
        let _ = self.end(service.call(self.request().0)).await?;
        self.answers(&mut service).await
    }

    pub(super) async fn releases_on_drop(&self) -> Verdict {
        let tool = self.tool(|_| 1).capacity(1);
        let asked = tool.handle();
        let base = self.layered(tool);
        for _ in 0..LEAK_ROUNDS {
            let mut service = base.clone();
            let _ = self.ready(&mut service).await?;
            drop(service);
            ensure!(asked.reserved() == 0, "a dropped service keeps the tool's capacity");
        }
        self.answers(&mut base.clone()).await?;

        let mut holder = base.clone();
        let _ = self.ready(&mut holder).await?;
        let mut waiting = base.clone();
        let mut readiness = Driven::new(poll_fn(|cx| waiting.poll_ready(cx)));
        if let End::Spent = readiness.run(1).await {
            drop(holder);
            let woken = readiness.run(SPIN).await;
            ensure!(
                matches!(woken, End::Finished(_)),
                "a service that waits was not woken when a ready one was dropped"
            );
            drop(readiness);
            self.answers_when_called(&mut waiting).await?;
        }
        Ok(())
    }

    pub(super) async fn clones_earn_readiness(&self) -> Verdict {
        for capacity in [1, 2] {
            for (original_waits, clone_waits) in [(0, 0), (0, 10), (10, 0)] {
                let mut original = self.layered(self.tool(|_| 1).capacity(capacity));
                let _ = self.ready(&mut original).await?;
                let mut clone = original.clone();
                let originals = async {
                    sleep(original_waits * TICK).await;
                    self.answers_when_called(&mut original).await?;
                    self.answers(&mut original).await
                };
                let clones = async {
                    sleep(clone_waits * TICK).await;
                    self.answers(&mut clone).await
                };
                try_join(originals, clones).await?;
            }

            let mut original = self.layered(self.tool(|_| 1).capacity(capacity));
            let _ = self.ready(&mut original).await?;
            let mut clone = original.clone();
            drop(original);
            self.answers(&mut clone).await?;
        }
        Ok(())
    }

    pub(super) async fn surfaces_readiness_errors(&self) -> Verdict {
        let tool = self.tool(|_| 0).fails_readiness("the tool is gone");
        let mut service = self.layered(self.watch(tool));
        let Ok(()) = self.ready(&mut service).await? else { return Ok(()) };
        let answer = self.end(service.call(self.request().0)).await?;
        ensure!(answer.is_err(), "the tool failed to get ready, and the call got {answer:?}");
        Ok(())
    }
}
