//! Asks a tool that only reads whether a call ran whose outcome is unknown, and settles its record.
use super::{
    call::McpCall,
    check::{Checked, Made, Question, Shown},
    notes,
    settling::{self, Asks, CallRecords, End, PATIENCE, UNTIL, kept},
    tool::{ServerLink, ServerTool},
    unknowns::{self, BlockedByEqual, Ended, left_unknown},
};
use crate::wire::{jsonrpc::Token, params::client_meta};
use serde_json::{Map, Value, json, value::RawValue};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tool_reliability::idempotency::{DedupeRecord, RecordState, Resolution};
use tower_service::Service as _;
use tr_core::{
    Effect, FencingToken, Json, SystemClock, ToolCall, ToolManifest, WallClock, call::Attachment,
    internal::lock, manifest::OutcomeCheck,
};

/// How long a caller waits before it learns that the outcome is unknown; less, but never less than the second, if its
/// client may give up before.
const WHILE_WAITED_FOR: Duration = Duration::from_secs(4);
const AT_LEAST: Duration = Duration::from_millis(1_500);

impl ServerLink {
    /// The end of a call, or what is known of it once its check was asked; `None` if it has not run, was not sent now, and
    /// may be. `mcp` is what the client sent.
    pub(super) async fn asked_end(self: &Arc<Self>, mcp: &McpCall, end: End) -> Option<End> {
        let Some(checked) = &mcp.checked else { return Some(end) };
        let barred = end.as_ref().err().and_then(|error| error.downcast_ref::<BlockedByEqual>());
        let (is_barred, was_sent) = (barred.is_some(), mcp.is_own_id_used());
        if !was_sent || unknowns::ended(&end, None) == Ended::Not {
            self.unknowns.made.did_not_run(&checked.question);
        }
        // The tools of a host that runs them itself cannot be asked.
        if self.host_runs || !is_barred && left_unknown(&end).is_none() {
            return Some(end);
        }
        // The call that may have run: this one, or the equal one that blocks it.
        let equals = mcp.trace.equals;
        let (key, call) = match barred.map(|barred| barred.call) {
            None => (checked.own, equals),
            Some(key) => (key, equals.zip(key).map(|(equals, key)| equals.of(key))),
        };
        let unknowns = &self.unknowns;
        if is_barred && call.is_some_and(|call| unknowns.is_anothers(&call)) {
            // What became of another caller's call is for that one.
            return Some(end);
        }
        let records = &self.records;
        let (asked, run) = match records.open_run(checked, key, mcp.sent_at()).await {
            Some((asked, run)) => (asked, Some(run)),
            // It has no record.
            None if was_sent => (Checked { last: mcp.sent_at(), ..Checked::clone(checked) }, None),
            None => return Some(end),
        };
        let since = SystemClock.unix_ms().saturating_sub(checked.question.since);
        let left = self.lock().limits.idle + AT_LEAST;
        let left = left.saturating_sub(Duration::from_millis(since));
        let asking = Asking { by: self, of: Source::Server(mcp) };
        let known = settling::until_known(&asking, &asked);
        let known = timeout(left.clamp(AT_LEAST, WHILE_WAITED_FOR), known).await;
        let Ok(Some((how, said))) = known else { return Some(end) };
        let ran = !matches!(how, Resolution::DidNotRun);
        call.iter().for_each(|call| unknowns.is_over(call, ran));
        if let Some(run) = run {
            records.settle(run, kept(&asked.question, how, self.keeps_answers)).await;
        }
        mcp.keep(None);
        if is_barred || was_sent || ran {
            return Some(said);
        }
        unknowns.made.begin(checked);
        None
    }

    /// Goes on to ask about a call whose caller has learned that its outcome is unknown.
    pub(super) async fn go_on_asking(self: Arc<Self>, mcp: Arc<McpCall>) {
        let Some(checked) = &mcp.checked else { return };
        let absent = checked.check().and_then(|check| check.absent_after).unwrap_or_default();
        let asked = Checked { last: mcp.sent_at(), ..Checked::clone(checked) };
        let asking = Asking { by: &self, of: Source::Server(&mcp) };
        let known = timeout(UNTIL + absent, settling::until_known(&asking, &asked)).await;
        let Ok(Some((how, _))) = known else { return };
        let records = &self.records;
        let run = records.open_run(&asked, asked.own, mcp.sent_at()).await;
        if run.as_ref().is_some_and(|(it, _)| it.question.nonce != asked.question.nonce) {
            return;
        }
        mcp.trace.equals.iter().for_each(|it| self.unknowns.ended_late(it, &how));
        if let Some((_, run)) = run {
            records.settle(run, kept(&asked.question, how, self.keeps_answers)).await;
        }
    }

    /// Settles the calls of these tools of this server, which its host runs, that a call of the host's shows.
    pub(super) async fn settle_shown(
        self: Arc<Self>,
        tools: Vec<Arc<ToolManifest>>,
        server: Box<str>,
        seen: Seen,
    ) {
        let params = serde_json::from_str::<Map<String, Value>>(seen.params.get());
        let Ok(params) = params else { return };
        let records = &self.records;
        let asking = Asking { by: &self, of: Source::Host(&seen) };
        for tool in tools {
            let found = records.of_tool(&tool).await.unwrap_or_default();
            // Other servers may have a tool of this name.
            let is_asked = |(question, record): &(Question, DedupeRecord)| {
                record.state == RecordState::Unknown
                    && question.args == params
                    && record.request.about.get("server").is_some_and(|it| **it == *server)
            };
            for (question, record) in found.into_iter().filter(is_asked) {
                let Ok(key) = record.key.parse() else { continue };
                let (own, last) = (Some(key), record.updated_at_ms);
                let asked = Checked { tool: tool.clone(), question, own, last };
                if let Some((how, _)) = settling::until_known(&asking, &asked).await {
                    let run = FencingToken { key, epoch: record.epoch };
                    let how = kept(&asked.question, how, self.keeps_answers);
                    records.settle(run, how).await;
                }
            }
        }
    }

    /// The call that asks, which is begun.
    fn open(
        &self,
        mcp: &McpCall,
        check: &OutcomeCheck,
        question: &Question,
    ) -> Option<(ToolCall, Arc<McpCall>)> {
        let mut wire = self.lock();
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

/// Only its caller's own connection may ask, while it is there.
struct Asking<'a> {
    by: &'a Arc<ServerLink>,
    of: Source<'a>,
}

/// Where answers come from.
enum Source<'a> {
    Server(&'a McpCall),
    Host(&'a Seen),
}

/// A call that a host has made itself.
pub(super) struct Seen {
    pub(super) params: Json,
    /// When it began, in milliseconds since 1970.
    pub(super) begun: u64,
    pub(super) result: Box<RawValue>,
}

impl Asks for Asking<'_> {
    fn records(&self) -> &CallRecords {
        &self.by.records
    }

    fn made(&self) -> &Made {
        &self.by.unknowns.made
    }

    fn is_reachable(&self) -> bool {
        matches!(self.of, Source::Server(_)) && self.by.is_reachable()
    }

    fn success(&self, text: &str, _: &Value) -> Value {
        json!({ "content": [notes::block(text)] })
    }

    fn begins(&self) -> u64 {
        match self.of {
            Source::Server(_) => SystemClock.unix_ms(),
            Source::Host(Seen { begun, .. }) => *begun,
        }
    }

    async fn asked(&self, check: &OutcomeCheck, question: &Question) -> Result<String, Shown> {
        let (by, mcp) = match self.of {
            Source::Server(mcp) => (self.by, mcp),
            Source::Host(seen) => return Ok(seen.result.get().to_owned()),
        };
        let known = lock(&by.effects).of(&check.tool);
        let effect = known.and_then(|known| known.by_server.or(known.manifest.effect));
        if effect != Some(Effect::ReadOnly) {
            return Err(Shown::Nothing(
                "the tool to ask is not known to only read: declare effect = \"read_only\" for it",
            ));
        }
        let Some((call, mcp)) = by.open(mcp, check, question) else {
            return Err(Shown::NotYet("it cannot be asked now"));
        };
        let _open = Open { link: by, id: &mcp.id };
        let end = timeout(PATIENCE, ServerTool(by.clone()).call(call)).await;
        let Ok(Ok(outcome)) = end else { return Err(Shown::NotYet("it was not answered")) };
        if outcome.error().is_some() {
            return Err(Shown::NotYet("its answer is a failure"));
        }
        let result = outcome.content().map(|content| content.get().to_owned());
        result.ok_or(Shown::Nothing("it has no answer"))
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
