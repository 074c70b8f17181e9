//! The laws of errors and panics.

use super::scene::{SPIN, Scene, TICK, Verdict, ensure};
use crate::{
    BoxError,
    drive::{Driven, PATIENCE},
    tool::{Failure, Scripted, Step},
};
use std::{
    error::Error,
    fmt,
    future::poll_fn,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Poll,
};
use tower_service::Service;

impl<Req, Res, L, S> Scene<'_, Req, Res, L>
where
    Req: Clone + Send + 'static,
    Res: Clone + fmt::Debug + Send + 'static,
    L: Fn(Scripted<Req, Res>) -> S,
    S: Service<Req, Response = Res> + Clone,
    S::Error: Into<BoxError>,
{
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
            let tool = self.tool_panicking_once(step).capacity(1);
            let asked = tool.handle();
            let base = self.layered(tool);
            self.call_that_panics(&mut base.clone()).await;
            let after = async {
                self.is_idle(&asked).await?;
                self.answers(&mut base.clone()).await
            };
            after
                .await
                .map_err(|observed| format!("after a panic in the tool's {what}: {observed}"))?;
        }
        Ok(())
    }

    fn tool_panicking_once(&self, step: Step<Res>) -> Scripted<Req, Res> {
        // Threads share a script, but a response need not be `Sync`.
        let step = std::sync::Mutex::new(Some(step));
        self.tool_that(move |_| step.lock().ok()?.take())
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
