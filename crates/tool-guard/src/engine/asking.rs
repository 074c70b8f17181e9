//! Asks a tool that only reads whether a call ran whose outcome is unknown, and settles its record.
use super::{
    call::McpCall,
    check::{self, Checked, NOTED, Question, Shown},
    effects::Effects,
    failure::Failure,
    notes,
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
    idempotency::{
        RecordState, Resolution,
        store::{Query, Selector, StateFilter},
    },
    telemetry::TARGET,
};
use tower_service::Service as _;
use tr_core::{
    BoxError, Effect, FailureInfo, FencingToken, Json, Ran, SystemClock, ToolCall, ToolManifest,
    ToolOutcome, Verdict, WallClock, call::Attachment, canonical::Key, internal::lock,
    manifest::OutcomeCheck, printable,
};

type End = Result<ToolOutcome, BoxError>;

/// How long a caller waits before it learns that the outcome is unknown; less, but never less than the second, if its
/// client may give up before.
const WHILE_WAITED_FOR: Duration = Duration::from_secs(4);
const AT_LEAST: Duration = Duration::from_millis(1_500);

/// The first pause between two questions, which doubles, and the longest.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

/// For how long it is asked after the caller has its answer.
const UNTIL: Duration = Duration::from_secs(600);

/// If a tool has more records, they are not looked through.
const MOST_RECORDS: usize = 10_000;

/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much of an element a model is shown, in characters.
const SHOWN: usize = 2_000;

/// Asks for one client.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) link: Arc<ServerLink>,
    pub(super) effects: Arc<Mutex<Effects>>,
}

impl Asker {
    /// The end of a call, or what is known of it once its check was asked; `None` if it has not run, was not sent now, and
    /// may be. `mcp` is what the client sent.
    pub(super) async fn ended(&self, mcp: &McpCall, end: End) -> Option<End> {
        let Some(checked) = &mcp.checked else { return Some(end) };
        let barred = end.as_ref().err().and_then(|error| error.downcast_ref::<BlockedByEqual>());
        let (is_barred, was_sent) = (barred.is_some(), mcp.is_own_id_used());
        if !was_sent || unknowns::ended(&end, None) == Ended::Not {
            self.link.unknowns.made.did_not_run(&checked.question);
        }
        if !is_barred && left_unknown(&end).is_none() {
            return Some(end);
        }
        // The call that may have run: this one, or the equal one that blocks it.
        let equals = mcp.trace.equals;
        let (key, call) = match barred.map(|barred| barred.call) {
            None => (checked.own, equals),
            Some(key) => (key, equals.zip(key).map(|(equals, key)| equals.of(key))),
        };
        let unknowns = &self.link.unknowns;
        if is_barred && call.is_some_and(|call| unknowns.is_anothers(&call)) {
            // What became of another caller's call is for that one.
            return Some(end);
        }
        let (asked, run) = match self.open_run(mcp, checked, key).await {
            Some((asked, run)) => (asked, Some(run)),
            // It has no record.
            None if was_sent => (Checked { last: mcp.sent_at(), ..Checked::clone(checked) }, None),
            None => return Some(end),
        };
        let since = SystemClock.unix_ms().saturating_sub(checked.question.since);
        let left = self.link.lock().limits.idle + AT_LEAST;
        let left = left.saturating_sub(Duration::from_millis(since));
        let known = self.until_known(mcp, &asked);
        let known = timeout(left.clamp(AT_LEAST, WHILE_WAITED_FOR), known).await;
        let Ok(Some((how, said))) = known else { return Some(end) };
        let ran = !matches!(how, Resolution::DidNotRun);
        call.iter().for_each(|call| unknowns.is_over(call, ran));
        if let Some(run) = run {
            self.link.settle_now(run, self.kept(&asked.question, how)).await;
        }
        mcp.keep(None);
        if is_barred || was_sent || ran {
            return Some(said);
        }
        unknowns.made.begin(checked);
        None
    }

    /// Asks until it is known how the call ended; `None` if that cannot be found out so.
    async fn until_known(
        &self,
        mcp: &McpCall,
        asked: &Checked,
    ) -> Option<(Resolution<ToolOutcome>, End)> {
        let mut pause = FIRST;
        loop {
            let shown = self.ask(mcp, asked).await;
            if let Some(known) = settlement(&asked.tool, &shown) {
                return Some(known);
            }
            if !matches!(shown, Shown::NotYet(_)) || !self.link.is_reachable() {
                return None;
            }
            sleep(pause).await;
            pause = LONGEST.min(pause * 2);
        }
    }

    /// What the record of that call keeps of it.
    fn kept(&self, asked: &Question, how: Resolution<ToolOutcome>) -> Resolution<ToolOutcome> {
        match how {
            _ if asked.is_brief => Resolution::DidNotRun,
            Resolution::Done(_) if !self.link.keeps_answers => Resolution::DoneNotKept,
            how => how,
        }
    }

    /// Goes on to ask about a call whose caller has learned that its outcome is unknown.
    pub(super) async fn go_on(self, mcp: Arc<McpCall>) {
        let Some(checked) = &mcp.checked else { return };
        let absent = checked.check().and_then(|check| check.absent_after).unwrap_or_default();
        let asked = Checked { last: mcp.sent_at(), ..Checked::clone(checked) };
        let known = timeout(UNTIL + absent, self.until_known(&mcp, &asked)).await;
        let Ok(Some((how, _))) = known else { return };
        let run = self.open_run(&mcp, &asked, asked.own).await;
        if run.as_ref().is_some_and(|(it, _)| it.question.nonce != asked.question.nonce) {
            return;
        }
        mcp.trace.equals.iter().for_each(|it| self.link.unknowns.ended_late(it, &how));
        if let Some((_, run)) = run {
            self.link.settle_now(run, self.kept(&asked.question, how)).await;
        }
    }

    /// The run that the record of this key is open for, and what is asked about it.
    async fn open_run(
        &self,
        mcp: &McpCall,
        of: &Checked,
        key: Option<Key>,
    ) -> Option<(Checked, FencingToken)> {
        let key = key?;
        let record = self.link.record(&key).await?;
        let question: Question = serde_json::from_str(record.request.about.get(NOTED)?).ok()?;
        let (own, sent_at) = (Some(key), mcp.sent_at());
        let is_own = question.nonce == of.question.nonce;
        let last = match record.state {
            RecordState::Unknown | RecordState::Inflight if is_own => sent_at,
            RecordState::Unknown => record.updated_at_ms.max(sent_at),
            _ => return None,
        };
        let asked = Checked { question, own, last, ..Checked::clone(of) };
        Some((asked, FencingToken { key, epoch: record.epoch }))
    }

    /// Whether a record is of another call whose effect is like that of this one, or that cannot be seen.
    async fn is_recorded_twice(&self, asked: &Checked) -> bool {
        let Some(store) = self.link.store() else { return false };
        let selector = Selector::Tool(asked.tool.tool.full_name().into());
        let query = Query { selector, state: StateFilter::Any };
        let Ok(found) = store.listing(&query, MOST_RECORDS, true).await else { return true };
        found.records.len() == MOST_RECORDS
            || !found.unreadable.is_empty()
            || found.records.iter().any(|record| {
                let noted = record.request.about.get(NOTED);
                let other = noted.and_then(|noted| serde_json::from_str::<Question>(noted).ok());
                record.tool == asked.tool.tool.full_name()
                    && record.state != RecordState::Cancelled
                    && other.is_some_and(|other| other.is_twin_of(&asked.question))
            })
    }

    /// Asks once. Only its caller's own connection may ask, while it is there.
    async fn ask(&self, mcp: &McpCall, asked: &Checked) -> Shown {
        let Some(check) = asked.check() else { return Shown::Nothing("its tool has no check") };
        let mut shown = self.asked(mcp, check, asked).await;
        if matches!(shown, Shown::Ran(_))
            && (self.link.unknowns.made.has_twin(asked) || self.is_recorded_twice(asked).await)
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

    async fn asked(&self, mcp: &McpCall, check: &OutcomeCheck, asked: &Checked) -> Shown {
        let known = lock(&self.effects).of(&check.tool);
        let effect = known.and_then(|known| known.by_server.or(known.manifest.effect));
        if effect != Some(Effect::ReadOnly) {
            return Shown::Nothing(
                "the tool to ask is not known to only read: declare effect = \"read_only\" for it",
            );
        }
        let Some((call, mcp)) = self.open(mcp, check, &asked.question) else {
            return Shown::NotYet("it cannot be asked now");
        };
        let _open = Open { link: &self.link, id: &mcp.id };
        let end = timeout(PATIENCE, ServerTool(self.link.clone()).call(call)).await;
        let Ok(Ok(outcome)) = end else { return Shown::NotYet("it was not answered") };
        if outcome.error().is_some() {
            return Shown::NotYet("its answer is a failure");
        }
        let Some(result) = outcome.content() else { return Shown::Nothing("it has no answer") };
        let Checked { question, last, .. } = asked;
        check::judge(check, question, *last, result.get(), SystemClock.unix_ms())
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
            let content = json!({ "content": [notes::block(&text)] });
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
