//! Plays a row: a tool by its script, and calls of it, in words; and says what was seen, in words.
use std::{fmt::Write as _, mem, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tool_reliability::{Guarded, config::Live};
use tower::ServiceExt;
use tr_core::{
    BoxError, BreakerHint, Effect, Json, KeyRef, Params, Ran, RetryOverride, ToolCall, ToolId,
    ToolOutcome, Verdict,
    chunks::{ChunkLimits, channel},
    code, failure_info,
    manifest::Capability,
};
use tr_testkit::{
    calls::{ScriptedTool, answers, fails, reports},
    logs::Logs,
    tool::{Handle, Step},
};
use tr_turn::{Call, Draft, Limits, Tools, Turns};

type Answer = Result<ToolOutcome, BoxError>;

struct Stage<'l> {
    live: &'l Live,
    effect: Option<Effect>,
    tool: Guarded<ScriptedTool>,
    asked: Handle<ToolCall>,
    began: Instant,
    started: Vec<JoinHandle<Answer>>,
    logs: Logs,
    seen: Vec<String>,
}

/// What the tool does at one attempt: what it answers, or with which code it fails; `?` if it may
/// have run, `!` if that will not pass; after so many milliseconds, `@`.
fn step(word: &'static str) -> Step<ToolOutcome> {
    if let Some((word, millis)) = word.split_once('@') {
        return Step::after(Duration::from_millis(millis.parse().unwrap()), step(word));
    }
    match word {
        "ok" => answers("ok"),
        "big" => answers(&"x".repeat(2000)),
        "hang" => Step::Hang,
        _ if word == "null" || word.starts_with('{') => {
            Step::Ok(ToolOutcome::success(Json::from_text(word).unwrap()))
        }
        _ => match (word.strip_suffix('?'), word.strip_suffix('!')) {
            (Some(code), _) => fails(code, Verdict::TRANSIENT, Ran::Unknown),
            (_, Some(code)) => fails(code, Verdict::Permanent, Ran::Yes),
            _ if word.starts_with("says:") => reports("refused", &word[5..]),
            _ => fails(word, Verdict::TRANSIENT, Ran::No),
        },
    }
}

fn script(words: &'static str) -> impl Iterator<Item = Step<ToolOutcome>> {
    words.split_whitespace().flat_map(|word| {
        let (word, times) = times(word);
        std::iter::repeat_n(step(word), times)
    })
}

/// `call*3` is three times `call`.
fn times(word: &str) -> (&str, usize) {
    let many = word.rsplit_once('*').and_then(|(word, n)| Some((word, n.parse().ok()?)));
    many.unwrap_or((word, 1))
}

/// What is seen when these calls are made of a tool with this script, the last step of which repeats.
pub(crate) async fn played(
    live: &Live,
    effect: Option<Effect>,
    words: &'static str,
    does: &str,
) -> String {
    let tool = ScriptedTool::script(script(words)).then_repeat_last();
    let (logs, _listening) = Logs::listen(|logs| {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || logs.clone())
            .finish()
    });
    let mut stage = Stage {
        live,
        effect,
        asked: tool.handle(),
        tool: live.stack().service(tool),
        began: Instant::now(),
        started: Vec::new(),
        logs,
        seen: Vec::new(),
    };
    for word in does.split_whitespace() {
        let (word, times) = times(word);
        for _ in 0..times {
            stage.act(word).await;
        }
    }
    stage.told()
}

impl Stage<'_> {
    async fn act(&mut self, word: &str) {
        let (what, how) = word.split_once(':').unwrap_or((word, ""));
        let saw = match what {
            "call" => {
                let end = self.tool.clone().oneshot(self.call(how)).await;
                said(&end)
            }
            "stream" => {
                let mut call = self.call(how);
                let (chunks, reader) = channel(ChunkLimits::default());
                drop(reader);
                call.parts_mut().chunks = Some(chunks);
                // The tool's first chunk, and the only one.
                call.chunk_sink().start_send("a").expect("it is open");
                said(&self.tool.clone().oneshot(call).await)
            }
            "start" => {
                self.started.push(tokio::spawn(self.tool.clone().oneshot(self.call(how))));
                // Until it waits for something.
                return sleep(Duration::from_millis(1)).await;
            }
            "join" => {
                for started in mem::take(&mut self.started) {
                    self.seen.push(said(&started.await.unwrap()));
                }
                return;
            }
            "cut" => {
                let started = self.started.remove(0);
                started.abort();
                return assert!(started.await.unwrap_err().is_cancelled());
            }
            "wait" => return sleep(Duration::from_millis(how.parse().unwrap())).await,
            "runs" => format!("runs={}", self.asked.calls()),
            "took" => format!("took={}", self.began.elapsed().as_millis()),
            "starts" => {
                let starts = self.asked.starts();
                format!("starts={:?}", starts.iter().map(Duration::as_millis).collect::<Vec<_>>())
            }
            "breaker" => {
                let breaker = self.live.stack().breakers().get(KeyRef::new(how));
                breaker.map_or("none".into(), |breaker| format!("{:?}", breaker.state()))
            }
            "stale" => format!("stale={}", self.live.stack().records().stale().len()),
            "logged" => format!("logged={}", self.logs.text().contains(how)),
            "can" => self.can(how),
            _ => panic!("what is {word}?"),
        };
        self.seen.push(saw);
    }

    /// Whether a capability is announced to a program.
    fn can(&self, what: &str) -> String {
        let call = self.call("cache=k");
        let (tool, hints) = (call.manifest().unwrap(), &call.parts().hints);
        let can = match what {
            "stream" => tool.streams_for(hints),
            "cache" => tool.cache_key_of(hints).is_some(),
            _ => self.live.catalog().supports("search", Capability::Idempotency),
        };
        format!("{what}={can}")
    }

    /// A call of `search` in session `s`, but for what is said of it: `e=ro;turn=1`.
    fn call(&self, how: &str) -> ToolCall {
        let said = |name: &str| {
            how.split(';').filter_map(|one| one.split_once('=')).find(|(key, _)| *key == name)
        };
        let said = |name: &str| said(name).map(|(_, value)| value);
        let params = Params::from_text(said("p").unwrap_or("{}")).unwrap();
        let mut parts = said("t").unwrap_or("search").split('|');
        let name = parts.next().unwrap();
        let id = ToolId::from_parts(parts.next().filter(|it| !it.is_empty()), name, parts.next());
        let mut call = ToolCall::new(id, params).session(said("s").unwrap_or("s"));
        let effect = match said("e") {
            Some("ro") => Some(Effect::ReadOnly),
            Some("id") => Some(Effect::Idempotent),
            Some("mu") => Some(Effect::Mutating),
            _ => self.effect,
        };
        if let Some(effect) = effect {
            call = call.effect(effect);
        }
        let parts = call.parts_mut();
        parts.idempotency.key = said("key").map(Into::into);
        parts.turn = said("turn").map(Into::into);
        parts.step = said("step").map(Into::into);
        parts.context.agent = said("agent").map(Into::into);
        parts.retry = said("asks").map(|_| RetryOverride::default());
        if said("shares").is_some() {
            parts.breaker = Some(BreakerHint::Dependency);
        }
        parts.hints.prefer_streaming = true;
        parts.hints.cache_key = said("cache").map(Into::into);
        self.live.catalog().manifested(call)
    }

    /// `ok ok timeout` as `ok*2 timeout`.
    fn told(self) -> String {
        let mut told = String::new();
        for same in self.seen.chunk_by(|a, b| a == b) {
            told += if told.is_empty() { "" } else { " " };
            told += &same[0];
            if same.len() > 1 {
                write!(told, "*{}", same.len()).unwrap();
            }
        }
        told
    }
}

/// `ok`, `replay`, or the code of a failure; and whether there is a note for the model.
fn said(end: &Answer) -> String {
    let (mut said, text) = match end {
        Ok(outcome) => {
            let error = outcome.error();
            let said = match (error, outcome.from_cache()) {
                (Some(error), false) => error.code.to_string(),
                (Some(error), true) => format!("replayed_{}", error.code),
                (None, true) => "replay".into(),
                (None, false) => "ok".into(),
            };
            (said, outcome.parts().notes.concat())
        }
        Err(error) => {
            let code = failure_info(&**error).map_or(code::UNCLASSIFIED, |facts| facts.code());
            (code.to_owned(), error.to_string())
        }
    };
    for (told, mark) in [
        ("[LOOP DETECTED]", "+loop"),
        ("[TOOL ERROR LIMIT]", "+limit"),
        ("[TOOL ERRORS]", "+errors"),
        ("[LOOP WARNING]", "+warning"),
    ] {
        if text.contains(told) {
            said += mark;
        }
    }
    said
}

/// The ends of the calls of a turn, one after another; `search` fails, all others succeed.
pub(crate) async fn turned(live: &Live, words: &'static str, calls: &str) -> String {
    let tool = ScriptedTool::by(move |_, call: &ToolCall| match call.parts().tool.label() {
        "search" => step(words),
        _ => step("ok@10"),
    });
    let tools = Tools::any().catalog(live.catalog());
    let concurrency = if calls.contains("alone") { 1 } else { 8 };
    let limits = Limits { concurrency, ..Limits::default() };
    let names = calls.split_whitespace().filter(|name| *name != "alone");
    let draft =
        names.fold(Draft::new("t").limits(limits), |draft, name| match name.split_once('<') {
            Some((name, of)) => draft.call(Call::new(name).after(of)),
            None => draft.call(Call::new(name)),
        });
    let report = Turns::new(live.stack().service(tool)).run(draft.check(&tools).unwrap()).await;
    let told = report.calls.iter().map(|call| {
        let decided = call.decision.as_ref().map_or("", |it| it.recovery.as_str());
        let started = call.started.map_or("never".into(), |at| at.as_millis().to_string());
        format!("{}={}{decided}@{started}", call.name, call.outcome.as_str())
    });
    told.collect::<Vec<_>>().join(" ")
}
