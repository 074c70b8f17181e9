//! The acceptance cases of turns, over the whole stack and under paused time.
mod cancelling;
mod cascades;
mod handling;
mod timeouts;
mod trace;

use std::{collections::HashMap, sync::Arc, time::Duration};
use tool_reliability::{
    Guarded, ToolStack,
    breaker::{self},
    retry::RetryConfig,
};
use tr_core::{BoxError, Effect, ToolCall, ToolOutcome};
use tr_testkit::{
    calls::answers,
    tool::{Handle, Scripted, Step},
};
use tr_turn::{Draft, Recorder, Report, Tools, Turns};

type Tool = Scripted<ToolCall, ToolOutcome>;

/// Tools, each with a script of its own whose last step repeats, behind the stack with the preset
/// `error_handling`.
struct Bench {
    turns: Turns<Guarded<Tool>>,
    stack: ToolStack,
    handle: Handle<ToolCall>,
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn after(secs: u64, then: Step<ToolOutcome>) -> Step<ToolOutcome> {
    Step::after(seconds(secs), then)
}

/// Fails with this text and nothing else, as tools do.
fn says(text: &str) -> Step<ToolOutcome> {
    Step::err(BoxError::from(text))
}

impl Bench {
    fn new<const N: usize>(scripts: [(&'static str, Vec<Step<ToolOutcome>>); N]) -> Self {
        Self::with_timeout(30, scripts)
    }

    fn with_timeout<const N: usize>(
        secs: u64,
        scripts: [(&'static str, Vec<Step<ToolOutcome>>); N],
    ) -> Self {
        let scripts: HashMap<_, _> = scripts.into_iter().collect();
        let counts = Arc::new(std::sync::Mutex::new(HashMap::<String, usize>::new()));
        let tool = Scripted::by(move |_, call: &ToolCall| {
            let name = call.parts().tool.label();
            let script = scripts.get(name).unwrap_or_else(|| panic!("no script for {name}"));
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(name.to_owned()).or_default();
            *count += 1;
            script[(*count - 1).min(script.len() - 1)].clone()
        });
        let handle = tool.handle();
        let recorder = Recorder::default();
        let stack = ToolStack::builder()
            .retry(|retry| retry.config(RetryConfig::fixed_cadence()))
            .breaker(|_| breaker::Builder::close_on_first_success())
            .loop_guard(|guard| guard.enabled(false))
            .attempt_timeout(|timeout| timeout.after(seconds(secs)))
            .hook(recorder.clone())
            .observer(Arc::new(recorder.clone()))
            .build()
            .unwrap();
        let turns = Turns::new(stack.service(tool))
            .recorder(recorder)
            .clock(tr_core::SetClock::at(1_762_338_615_000));
        Self { turns, stack, handle }
    }

    async fn run(&self, draft: Draft) -> Report {
        self.turns.run(draft.check(&Tools::any()).unwrap()).await
    }

    /// How often a tool was called.
    fn calls(&self, tool: &str) -> usize {
        let requests = self.handle.requests();
        requests.iter().filter(|call| call.parts().tool.label() == tool).count()
    }
}

/// A tool that only reads, as the requirement's flight search does.
fn reads(tool: &str) -> tr_turn::Call {
    tr_turn::Call::new(tool).effect(Effect::ReadOnly)
}

/// The sentences of the trace, with the tool each of them is about.
fn sentences(report: &Report) -> Vec<(String, String)> {
    let entries = report.trace.entries().iter();
    let sentence = |entry: &tr_turn::Entry| {
        let tool = entry.tool.as_deref().unwrap_or_default();
        Some((tool.to_owned(), entry.fact.sentence(entry)?))
    };
    entries.filter_map(sentence).collect()
}

fn has(report: &Report, tool: &str, sentence: &str) -> bool {
    sentences(report).contains(&(tool.to_owned(), sentence.to_owned()))
}

/// Each decision of the trace: about which tool, what, and why.
fn decisions(report: &Report) -> Vec<(String, &'static str, String)> {
    let entries = report.trace.entries().iter();
    let decision = |entry: &tr_turn::Entry| match &entry.fact {
        tr_turn::Fact::RecoveryDecision { decision, reason, .. } => {
            let tool = entry.tool.as_deref().unwrap_or_default();
            Some((tool.to_owned(), *decision, reason.to_string()))
        }
        _ => None,
    };
    entries.filter_map(decision).collect()
}

fn ok() -> Vec<Step<ToolOutcome>> {
    vec![answers("ok")]
}

#[tokio::test]
async fn a_turn_runs_in_a_task_of_its_own() {
    let tool = tower::service_fn(|call: ToolCall| async move {
        Ok::<_, BoxError>(ToolOutcome::success(call.parts().params.clone()))
    });
    let turns = Turns::new(ToolStack::default().service(tool));
    let plan = Draft::new("t").call(reads("search")).check(&Tools::any()).unwrap();
    let report = tokio::spawn(async move { turns.run(plan).await }).await.unwrap();
    assert!(report.call("search").unwrap().content().is_some());
}
