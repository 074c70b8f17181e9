//! The law of dropping: a call dropped at any await point leaves nothing.

use super::scene::{Scene, Verdict, ensure, poll_ready_once};
use crate::{
    BoxError,
    drive::{Driven, End},
    tool::{Handle, Scripted},
};
use std::{fmt, future::poll_fn};
use tower_service::Service;

/// The wake-ups that the tool needs to respond.
const TICKS: usize = 3;

impl<Req, Res, L, S> Scene<'_, Req, Res, L>
where
    Req: Clone + Send + 'static,
    Res: Clone + fmt::Debug + Send + 'static,
    L: Fn(Scripted<Req, Res>) -> S,
    S: Service<Req, Response = Res> + Clone,
    S::Error: Into<BoxError>,
{
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
            let end = self.drop_unready(polls, &base, &asked).await;
            rival = rival.clone(); // drops the ready instance
            let end = match end {
                Ok(()) => self.works_on(&base, &asked).await,
                Err(seen) => Err(seen),
            };
            end.map_err(|seen| {
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
        let mut left = self.is_idle(asked).await;
        if left.is_ok() && wakers.held() > 0 {
            left = Err("its waker is still held".into());
        }
        if left.is_ok() {
            left = self.answers(&mut base.clone()).await;
        }
        Ok((matches!(end, End::Finished(_)), left))
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
        ensure!(wakers.iter().all(|waker| waker.held() == 0), "its waker is still held");
        ensure!(asked.waiting() == 0, "the tool still has to wake it");
        Ok(())
    }

    async fn works_on(&self, base: &S, asked: &Handle<Req>) -> Verdict {
        self.is_idle(asked).await?;
        self.answers(&mut base.clone()).await
    }
}
