//! Asks a tool whether another one's call ran whose outcome is unknown.
use crate::{
    engine::{
        check::{Checked, Made, Question, Shown},
        settling::{self, Asks, CallRecords, End, PATIENCE, UNTIL, kept},
        unknowns::{self, Earlier, Ended, left_unknown},
    },
    servers::endpoint::Upstream,
};
use serde_json::{Value, json};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, timeout};
use tool_reliability::{Guarded, Mode, config::Live, idempotency::Resolution};
use tower::ServiceExt as _;
use tower_service::Service;
use tr_core::{
    BoxError, DefaultPolicy, Effect, Json, RequestPolicy as _, SystemClock, ToolCall, ToolOutcome,
    WallClock as _, manifest::OutcomeCheck,
};

/// How long a caller waits before it learns that the outcome is unknown; less, but never less than the second, if its
/// deadline comes before.
const WHILE_WAITED_FOR: Duration = Duration::from_secs(4);
const AT_LEAST: Duration = Duration::from_millis(1_500);

/// The stack, with the checks of its tools.
#[derive(Clone)]
pub(super) struct Checks {
    pub(super) stack: Guarded<Upstream>,
    pub(super) asker: Arc<Asker>,
}

pub(super) struct Asker {
    pub(super) upstream: Upstream,
    pub(super) live: Live,
    pub(super) records: CallRecords,
    /// For calls that name no session, if their records outlive the guard.
    pub(super) instance: Option<Box<str>>,
    pub(super) keeps_answers: bool,
    pub(super) made: Made,
}

impl Service<ToolCall> for Checks {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = End> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.stack.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let Some(checked) = self.asker.checked(&mut call) else {
            return Box::pin(self.stack.call(call));
        };
        let (again, stack, asker) = (call.clone(), self.stack.clone(), self.asker.clone());
        asker.made.begin(&checked);
        let deadline = DefaultPolicy.deadline(&again);
        let end = self.stack.call(call);
        Box::pin(async move {
            let end = asker.ended(&checked, deadline, end.await).await;
            match end {
                Some(end) => end,
                // It has not run, as is known now.
                None => stack.oneshot(again).await,
            }
        })
    }
}

impl Asker {
    /// The call, if it can be asked about; then its record notes what is asked.
    fn checked(&self, call: &mut ToolCall) -> Option<Arc<Checked>> {
        let catalog = self.live.catalog();
        catalog.get(&call.parts().tool)?.check.as_ref()?;
        let known = catalog.manifested(call.clone());
        let is_guarded = self.live.stack().kill_switch().mode(&known) == Mode::Enforce;
        if !is_guarded || DefaultPolicy.effect(&known) != Effect::Mutating {
            return None;
        }
        let mut checked = Checked::of(&known)?;
        checked.own = known.id().ok().flatten().map(|id| match &self.instance {
            Some(instance) if !DefaultPolicy.has_scope(&known) => id.key.of_instance(instance),
            _ => id.key,
        });
        call.parts_mut().idempotency.about = Some(checked.question.noted().trim().into());
        Some(Arc::new(checked))
    }

    /// The end of a call, or what is known of it once its check was asked; `None` if the earlier run that its record tells
    /// of did not run, as is known now.
    async fn ended(
        self: &Arc<Self>,
        checked: &Arc<Checked>,
        deadline: Option<std::time::Instant>,
        end: End,
    ) -> Option<End> {
        if unknowns::ended(&end, None) == Ended::Not {
            self.made.did_not_run(&checked.question);
        }
        let Some(earlier) = left_unknown(&end) else { return Some(end) };
        let (mut asked, run) = match self.records.open_run(checked, checked.own, 0).await {
            Some((asked, run)) => (asked, Some(run)),
            // It has no key.
            None if checked.own.is_none() => (Checked::clone(checked), None),
            None => return Some(end),
        };
        let is_own = asked.question.nonce == checked.question.nonce;
        if is_own {
            asked.last = SystemClock.unix_ms();
        } else {
            self.made.did_not_run(&checked.question);
        }
        let left = deadline
            .map_or(WHILE_WAITED_FOR, |it| it.saturating_duration_since(Instant::now().into_std()));
        let left = left.clamp(AT_LEAST, WHILE_WAITED_FOR);
        let known = match earlier {
            // Who cancels waits no longer.
            Earlier::Cancelled => None,
            _ => timeout(left, settling::until_known(&**self, &asked)).await.ok().flatten(),
        };
        let Some((how, said)) = known else {
            if is_own && run.is_some() {
                tokio::spawn(self.clone().go_on(asked));
            }
            return Some(end);
        };
        let is_free = matches!(how, Resolution::DidNotRun) && !is_own;
        if let Some(run) = run {
            self.records.settle(run, kept(&asked.question, how, self.keeps_answers)).await;
        }
        if is_free {
            self.made.begin(checked);
            return None;
        }
        Some(said)
    }

    /// Goes on to ask about a call whose caller has learned that its outcome is unknown.
    async fn go_on(self: Arc<Self>, asked: Checked) {
        let absent = asked.check().and_then(|check| check.absent_after).unwrap_or_default();
        let known = timeout(UNTIL + absent, settling::until_known(&*self, &asked)).await;
        let Ok(Some((how, _))) = known else { return };
        if let Some((now, run)) = self.records.open_run(&asked, asked.own, asked.last).await
            && now.question.nonce == asked.question.nonce
        {
            self.records.settle(run, kept(&asked.question, how, self.keeps_answers)).await;
        }
    }
}

impl Asks for Asker {
    fn records(&self) -> &CallRecords {
        &self.records
    }

    fn made(&self) -> &Made {
        &self.made
    }

    fn is_reachable(&self) -> bool {
        true
    }

    fn success(&self, text: &str, element: &Value) -> Value {
        json!({ "settled": element, "note": text })
    }

    async fn asked(&self, check: &OutcomeCheck, question: &Question) -> Result<String, Shown> {
        let arguments = Json::from(Value::from(question.args.clone()));
        let call = self.live.catalog().manifested(ToolCall::new(&*check.tool, arguments));
        // The configuration may have been read again.
        if DefaultPolicy.effect(&call) != Effect::ReadOnly {
            return Err(Shown::Nothing("the tool to ask is not declared to only read"));
        }
        let Ok(Ok(outcome)) = timeout(PATIENCE, self.upstream.clone().call(call)).await else {
            return Err(Shown::NotYet("it was not answered"));
        };
        if outcome.error().is_some() {
            return Err(Shown::NotYet("its answer is a failure"));
        }
        let document = outcome.content().ok_or(Shown::Nothing("it has no answer"))?.get();
        let text = serde_json::from_str(document).unwrap_or_else(|_| document.to_owned());
        Ok(json!({ "content": [{ "text": text }] }).to_string())
    }
}
