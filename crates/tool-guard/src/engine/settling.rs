//! Finds out how calls of unknown outcome ended, by what another tool answers, and settles their records.
use super::{
    check::{Checked, Made, NOTED, Question, Shown, judge},
    failure::Failure,
};
use crate::terminal::short_id;
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;
use tool_reliability::{
    idempotency::{
        DedupeRecord, Handle, LateEnd, RecordState, Resolution, StoreHandle,
        store::{Query, Selector, StateFilter},
    },
    telemetry::TARGET,
};
use tr_core::{
    BoxError, FailureInfo, FencingToken, Ran, SystemClock, ToolManifest, ToolOutcome, Verdict,
    WallClock as _, canonical::Key, manifest::OutcomeCheck, printable,
};

pub(crate) type End = Result<ToolOutcome, BoxError>;

/// The first pause between two questions, each half as long again, and the longest.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

/// How long one answer is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// For how long it is asked after the caller has its answer.
pub(crate) const UNTIL: Duration = Duration::from_secs(600);

/// If a tool has more records, they are not looked through.
const MOST_RECORDS: usize = 10_000;

/// How much of an element a model is shown, in characters.
const SHOWN: usize = 2_000;

/// How often a late answer is offered to the store.
const SETTLES: u32 = 30;
const SETTLE_AGAIN: Duration = Duration::from_millis(100);

/// Who can ask a tool that only reads.
pub(crate) trait Asks: Sync {
    fn records(&self) -> &CallRecords;

    /// The calls that can be asked about.
    fn made(&self) -> &Made;

    /// Asks once: a result of `tools/call`, or what is shown without one.
    fn asked(
        &self,
        check: &OutcomeCheck,
        question: &Question,
    ) -> impl Future<Output = Result<String, Shown>> + Send;

    /// When what is asked now begins, in milliseconds since 1970: its answer may be no younger.
    fn begins(&self) -> u64 {
        SystemClock.unix_ms()
    }

    /// Whether it may be asked again.
    fn is_reachable(&self) -> bool;

    /// The answer of a call that has run, as this element shows; the text says so.
    fn success(&self, text: &str, element: &Value) -> Value;
}

/// Asks until it is known how the call ended; `None` if that cannot be found out so.
pub(crate) async fn until_known(
    asks: &impl Asks,
    asked: &Checked,
) -> Option<(Resolution<ToolOutcome>, End)> {
    let mut pause = FIRST;
    loop {
        let shown = ask(asks, asked).await;
        if let Some(known) = settlement(asks, &asked.tool, &shown) {
            return Some(known);
        }
        if !matches!(shown, Shown::NotYet(_)) || !asks.is_reachable() {
            return None;
        }
        sleep(pause).await;
        pause = LONGEST.min(pause * 3 / 2);
    }
}

async fn ask(asks: &impl Asks, asked: &Checked) -> Shown {
    let Some(check) = asked.check() else { return Shown::Nothing("its tool has no check") };
    let begun = asks.begins();
    let mut shown = match asks.asked(check, &asked.question).await {
        Ok(result) => judge(check, &asked.question, asked.last, &result, begun),
        Err(shown) => shown,
    };
    if matches!(shown, Shown::Ran(_))
        && (asks.made().has_twin(asked) || asks.records().has_twin(asked).await)
    {
        shown = Shown::Nothing("another call for the same thing was made meanwhile");
    }
    let (tool, record) = (printable(asked.tool.tool.name()), asked.own.as_ref().map(short_id));
    let record = record.unwrap_or_default();
    match &shown {
        Shown::NotYet(why) => {
            tracing::info!(target: TARGET, event = "check_undecided", %tool, record, asked = &*check.tool, why);
        }
        // It is not asked again: a person must know why.
        Shown::Nothing(why) => {
            tracing::warn!(target: TARGET, event = "check_undecided", %tool, record, asked = &*check.tool, why);
        }
        Shown::Ran(_) | Shown::DidNotRun => {
            let ran = if shown == Shown::DidNotRun { "no" } else { "yes" };
            tracing::warn!(target: TARGET, event = "check_settled", %tool, record, asked = &*check.tool, ran);
        }
    }
    shown
}

/// How a call ended of which this is shown, and what its caller learns.
fn settlement(
    asks: &impl Asks,
    tool: &ToolManifest,
    shown: &Shown,
) -> Option<(Resolution<ToolOutcome>, End)> {
    let asked = tool.check.as_ref().map(|check| printable(&check.tool)).unwrap_or_default();
    match shown {
        Shown::Ran(element) => {
            let shown: String = element.to_string().chars().take(SHOWN).collect();
            let text = format!(
                "[SETTLED] The server's answer is lost, but the call has run: {asked} shows it as {}. Do not repeat it.",
                printable(&shown),
            );
            let outcome = ToolOutcome::success(asks.success(&text, element));
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

/// What the record of that call keeps of it.
pub(crate) fn kept(
    asked: &Question,
    how: Resolution<ToolOutcome>,
    keeps_answers: bool,
) -> Resolution<ToolOutcome> {
    match how {
        _ if asked.is_brief => Resolution::DidNotRun,
        Resolution::Done(_) if !keeps_answers => Resolution::DoneNotKept,
        how => how,
    }
}

/// The records of calls, in memory and, if there is one, in a store.
#[derive(Clone, Debug)]
pub(crate) struct CallRecords(pub(crate) Handle<ToolOutcome>);

impl CallRecords {
    /// The records that outlive the guard, if there are any.
    pub(crate) fn store(&self) -> Option<StoreHandle<ToolOutcome>> {
        self.0.in_store()
    }

    /// The record of this key, in the store if there is one and it has it already.
    pub(crate) async fn of(&self, key: &Key) -> Option<DedupeRecord> {
        let stored = match self.store() {
            Some(store) => store.record(key).await.ok()?,
            None => None,
        };
        stored.or_else(|| self.0.record(key))
    }

    /// Settles a run whose end is known now, before anybody learns of it.
    pub(crate) async fn settle(&self, run: FencingToken, how: Resolution<ToolOutcome>) {
        if let Some(store) = self.store()
            && !store.record(&run.key).await.is_ok_and(|it| it.is_none())
        {
            return settle_in_store(store, run, how).await;
        }
        // Settled already, or gone.
        let _ = self.0.settle_run(&run.key, run.epoch, how);
    }

    /// The run that the record of this key is open for, and what is asked about it; the caller's last attempt was sent
    /// then, in milliseconds since 1970.
    pub(crate) async fn open_run(
        &self,
        of: &Checked,
        key: Option<Key>,
        sent_at: u64,
    ) -> Option<(Checked, FencingToken)> {
        let key = key?;
        let record = self.of(&key).await?;
        let question: Question = serde_json::from_str(record.request.about.get(NOTED)?).ok()?;
        let is_own = question.nonce == of.question.nonce;
        let last = match record.state {
            RecordState::Unknown | RecordState::Inflight if is_own => sent_at,
            RecordState::Unknown => record.updated_at_ms.max(sent_at),
            _ => return None,
        };
        let asked = Checked { question, own: Some(key), last, ..Checked::clone(of) };
        Some((asked, FencingToken { key, epoch: record.epoch }))
    }

    /// Whether a record is of another call whose effect is like that of this one, or that cannot be seen.
    async fn has_twin(&self, asked: &Checked) -> bool {
        let Some(found) = self.of_tool(&asked.tool).await else { return true };
        found.iter().any(|(other, record)| {
            record.state != RecordState::Cancelled && other.is_twin_of(&asked.question)
        })
    }

    /// The records of a tool's calls that can be asked about; `None` if not all can be seen.
    pub(crate) async fn of_tool(
        &self,
        tool: &ToolManifest,
    ) -> Option<Vec<(Question, DedupeRecord)>> {
        let name = tool.tool.full_name();
        let records = match self.store() {
            Some(store) => {
                let (selector, state) = (Selector::Tool(name.into()), StateFilter::Any);
                let query = Query { selector, state };
                let found = store.listing(&query, MOST_RECORDS, true).await.ok()?;
                let is_whole = found.records.len() < MOST_RECORDS && found.unreadable.is_empty();
                is_whole.then_some(found.records)?
            }
            None => self.0.records(),
        };
        let asked = |record: DedupeRecord| {
            let question = serde_json::from_str(record.request.about.get(NOTED)?).ok()?;
            (record.tool == name).then_some((question, record))
        };
        Some(records.into_iter().filter_map(asked).collect())
    }
}

/// Retries while the guard's own end of the call is not recorded yet, and while the store is busy.
pub(super) async fn settle_in_store(
    store: StoreHandle<ToolOutcome>,
    fence: FencingToken,
    how: Resolution<ToolOutcome>,
) {
    let record = short_id(&fence.key);
    for _ in 0..SETTLES {
        match store.settle_late(&fence.key, fence.epoch, how.clone()).await {
            Ok(LateEnd::InFlight) | Err(_) => sleep(SETTLE_AGAIN).await,
            Ok(LateEnd::Corrected) => {
                let why = "it was recorded that the call did not run, and the server has answered it: the answer is recorded, and a repeat does not run";
                return tracing::warn!(target: TARGET, event = "settlement_corrected", record, why);
            }
            Ok(LateEnd::ClaimedAgain) => {
                let why = "it was recorded that the call did not run, it was repeated, and the server has answered the first call: it may have run twice";
                return tracing::error!(target: TARGET, event = "may_have_run_twice", record, why);
            }
            // Settled already, or gone.
            Ok(_) => return,
        }
    }
    tracing::warn!(target: TARGET, event = "late_answer_not_recorded", record);
}
