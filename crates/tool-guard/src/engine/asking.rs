//! Asks a tool that only reads whether a call ran whose outcome is unknown, and settles its record.
use super::{
    call::McpCall,
    check::{self, Checked, NOTED, Question, Shown},
    effects::Effects,
    failure::Failure,
    in_flight::{Claim, PendingAnswer},
    tool::{ServerLink, ServerTool},
    unknowns::{self, BlockedByEqual, Ended, left_unknown},
};
use crate::{
    terminal::short_id,
    wire::{jsonrpc::Token, params::client_meta},
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tool_reliability::{
    idempotency::{RecordState, Resolution},
    telemetry::TARGET,
};
use tower_service::Service as _;
use tr_core::{
    BoxError, Effect, FailureInfo, FencingToken, Json, Ran, SystemClock, ToolCall, ToolManifest,
    ToolOutcome, Verdict, WallClock, call::Attachment, canonical::Key, internal::lock,
    manifest::OutcomeCheck, printable,
};

type End = Result<ToolOutcome, BoxError>;

/// The pauses before a caller that waits learns that the outcome is unknown.
const WHILE_WAITED_FOR: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest pause after the caller has its answer, and for how long it is asked then.
const LONGEST: Duration = Duration::from_secs(30);
const UNTIL: Duration = Duration::from_secs(600);

/// How much of an element a model is shown, in characters.
const SHOWN: usize = 2_000;

/// Asks for one client.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) link: Arc<ServerLink>,
    pub(super) effects: Arc<Mutex<Effects>>,
}

impl Asker {
    /// The end of a call, or what is known of it once its check was asked. `mcp` is what the client sent.
    pub(super) async fn ended(&self, mcp: &McpCall, end: End) -> End {
        let Some(checked) = &mcp.checked else { return end };
        let barred = end.as_ref().err().and_then(|error| error.downcast_ref::<BlockedByEqual>());
        let is_unknown = barred.is_some() || left_unknown(&end).is_some();
        if !mcp.is_own_id_used() || unknowns::ended(&end, None) == Ended::Not {
            self.link.unknowns.made.did_not_run(&checked.question);
        }
        if !is_unknown {
            return end;
        }
        let key = barred.map_or(checked.own, |barred| barred.call);
        let (question, run) = match self.open_run(key).await {
            Some((question, run)) => (question, Some(run)),
            // It has no record.
            None if barred.is_none() && mcp.is_own_id_used() => (checked.question.clone(), None),
            None => return end,
        };
        let asked = Checked { question, own: key, ..Checked::clone(checked) };
        for pause in WHILE_WAITED_FOR {
            sleep(pause).await;
            let shown = self.ask(mcp, &asked).await;
            let Some((how, said)) = settlement(&asked.tool, &shown) else {
                if matches!(shown, Shown::NotYet(_)) && self.link.is_reachable() {
                    continue;
                }
                break;
            };
            if let Some(run) = run {
                let how = if checked.is_brief { Resolution::DidNotRun } else { how };
                self.link.settle_now(run, how).await;
            }
            if let Some((equals, key)) = mcp.trace.equals.zip(key) {
                self.link.unknowns.found_out(&equals, key);
            }
            mcp.keep(None);
            return said;
        }
        end
    }

    /// Goes on to ask about a call whose caller has learned that its outcome is unknown.
    pub(super) async fn go_on(self, mcp: Arc<McpCall>) {
        let Some(checked) = mcp.checked.clone() else { return };
        let absent = checked.check().and_then(|check| check.absent_after).unwrap_or_default();
        let mut pause = LONGEST / 8;
        loop {
            let elapsed = SystemClock.unix_ms().saturating_sub(checked.question.since);
            if elapsed > tr_core::internal::millis(UNTIL + absent) {
                return;
            }
            sleep(pause).await;
            pause = LONGEST.min(pause * 2);
            let shown = self.ask(&mcp, &checked).await;
            let Some((how, _)) = settlement(&checked.tool, &shown) else {
                if matches!(shown, Shown::NotYet(_)) {
                    continue;
                }
                return;
            };
            let run = self.open_run(checked.own).await;
            let is_same = run.as_ref().is_none_or(|(it, _)| it.nonce == checked.question.nonce);
            let claim =
                run.map(|(_, fence)| Claim { fence, in_store: true, is_brief: checked.is_brief });
            if is_same {
                let equals = mcp.trace.equals;
                self.link.resolve(&PendingAnswer { claim, equals, ..Default::default() }, how);
            }
            return;
        }
    }

    /// The run that the record of this key is open for, and what is asked about it.
    async fn open_run(&self, key: Option<Key>) -> Option<(Question, FencingToken)> {
        let key = key?;
        let record = self.link.record(&key).await?;
        if !matches!(record.state, RecordState::Unknown | RecordState::Inflight) {
            return None;
        }
        let question = serde_json::from_str(record.request.about.get(NOTED)?).ok()?;
        Some((question, FencingToken { key, epoch: record.epoch }))
    }

    /// Asks once. Only its caller's own connection may ask, while it is there.
    async fn ask(&self, mcp: &McpCall, asked: &Checked) -> Shown {
        let Some(check) = asked.check() else { return Shown::Nothing("its tool has no check") };
        let mut shown = self.asked(mcp, check, &asked.question).await;
        if matches!(shown, Shown::Ran(_))
            && self.link.unknowns.made.has_twin(&check.tool, &asked.question)
        {
            shown = Shown::Nothing("another call for the same thing was made meanwhile");
        }
        let (tool, record) = (printable(asked.tool.tool.name()), asked.own.as_ref().map(short_id));
        let record = record.unwrap_or_default();
        match &shown {
            Shown::NotYet(why) | Shown::Nothing(why) => {
                tracing::info!(target: TARGET, event = "check_undecided", %tool, record, asked = &*check.tool, why);
            }
            Shown::Ran(_) | Shown::DidNotRun => {
                let ran = if shown == Shown::DidNotRun { "no" } else { "yes" };
                tracing::warn!(target: TARGET, event = "check_settled", %tool, record, asked = &*check.tool, ran);
            }
        }
        shown
    }

    async fn asked(&self, mcp: &McpCall, check: &OutcomeCheck, question: &Question) -> Shown {
        let known = lock(&self.effects).of(&check.tool);
        let effect = known.and_then(|known| known.by_server.or(known.manifest.effect));
        if effect != Some(Effect::ReadOnly) {
            return Shown::Nothing(
                "the tool to ask is not known to only read: declare effect = \"read_only\" for it",
            );
        }
        let Some((call, mcp)) = self.open(mcp, check, question) else {
            return Shown::NotYet("it cannot be asked now");
        };
        let _open = Open { link: &self.link, id: &mcp.id };
        let end = timeout(PATIENCE, ServerTool(self.link.clone()).call(call)).await;
        let Ok(Ok(outcome)) = end else { return Shown::NotYet("it was not answered") };
        if outcome.error().is_some() {
            return Shown::NotYet("its answer is a failure");
        }
        let result = outcome.content().map(|it| serde_json::from_str::<Value>(it.get()));
        let Some(Ok(result)) = result else { return Shown::Nothing("its answer cannot be read") };
        check::judge(check, question, &result, SystemClock.unix_ms())
    }

    /// The call that asks, which is begun.
    fn open(
        &self,
        mcp: &McpCall,
        check: &OutcomeCheck,
        question: &Question,
    ) -> Option<(ToolCall, Arc<McpCall>)> {
        let mut wire = self.link.lock();
        if wire.client_left {
            return None;
        }
        let id = wire.in_flight.own_id();
        let mut params = json!({ "name": check.tool, "arguments": question.args });
        let meta = client_meta(&mcp.line);
        if !meta.is_empty() {
            params["_meta"] = meta.into();
        }
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{params}}}"#,
            id.to_json()
        ) + "\n";
        let ours = McpCall::asking(id, &check.tool, line.into());
        wire.in_flight.open(&ours).ok()?;
        let ours = Arc::new(ours);
        let arguments = Json::from(Value::from(question.args.clone()));
        let mut call = ToolCall::new(&*check.tool, arguments).effect(Effect::ReadOnly);
        call.parts_mut().attachment = Attachment::new(ours.clone());
        Some((call, ours))
    }
}

/// A call of the guard's that is in flight, until it is dropped.
struct Open<'o> {
    link: &'o ServerLink,
    id: &'o Token,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.link.lock().in_flight.close(self.id);
    }
}

/// How a call ended of which this is shown, and what its caller learns.
fn settlement(tool: &ToolManifest, shown: &Shown) -> Option<(Resolution<ToolOutcome>, End)> {
    let asked = tool.check.as_ref().map(|check| printable(&check.tool)).unwrap_or_default();
    match shown {
        Shown::Ran(element) => {
            let element: String = element.to_string().chars().take(SHOWN).collect();
            let text = format!(
                "[SETTLED] The server's answer is lost, but the call has run: {asked} shows it as {}. Do not repeat it.",
                printable(&element),
            );
            let content = json!({ "content": [{ "type": "text", "text": text }] });
            let outcome = ToolOutcome::success(content);
            Some((Resolution::Done(outcome.clone()), Ok(outcome)))
        }
        Shown::DidNotRun => {
            let facts = FailureInfo::new("did_not_run", Ran::No, Verdict::TRANSIENT);
            let text = format!("The call did not run, as {asked} shows: call again");
            Some((Resolution::DidNotRun, Err(Failure::said(text, facts).into())))
        }
        Shown::NotYet(_) | Shown::Nothing(_) => None,
    }
}
