//! The laws of polling, waking and responding.

use super::scene::{SPIN, Scene, TICK, Verdict, ensure, poll_ready_once, together};
use crate::{
    BoxError,
    drive::{Driven, End},
    tool::Scripted,
};
use std::{fmt, future::poll_fn};
use tokio::time::sleep;
use tower_service::Service;

/// The polls that one wake-up of the tool may cause before they count as a busy loop.
const POLLS_PER_WAKE: usize = 8;

/// The number of concurrent calls.
const CROWD: usize = 16;

impl<Req, Res, L, S> Scene<'_, Req, Res, L>
where
    Req: Clone + Send + 'static,
    Res: Clone + fmt::Debug + Send + 'static,
    L: Fn(Scripted<Req, Res>) -> S,
    S: Service<Req, Response = Res> + Clone,
    S::Error: Into<BoxError>,
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
        together([Box::pin(waiting) as _, Box::pin(freeing) as _]).await
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
            let polls = call.polls();
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
        let calls = crowd.iter_mut().map(|one| Box::pin(self.answers(one)) as _);
        together(calls).await
    }
}
