//! Runs what a row says: a stack of a configuration alone, a scripted tool, and what came of it as text.
pub(crate) use crate::common::down;
use serde_json::{Value, json};
use std::{pin::Pin, time::Duration};
use tokio::time::Instant;
use tool_reliability::{
    Builder, Guarded,
    config::{Config, Live},
};
use tower::ServiceExt;
use tr_core::{
    BoxError, BreakerState, Effect, KeyRef, Params, ToolCall, ToolOutcome, failure_info,
};
use tr_testkit::{
    calls::ScriptedTool,
    tool::{Handle, Step},
};

/// What a scene shows.
pub(crate) type Shown = Pin<Box<dyn Future<Output = String>>>;

/// A key, and how a change of it is seen.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) group: &'static Group,
    pub(crate) key: &'static str,
    /// The key's value, as JSON.
    pub(crate) value: &'static str,
    /// What is seen without the key (`?` if that is random), and with it.
    pub(crate) seen: (&'static str, &'static str),
}

/// What the program adds to a stack: a store, a probe.
pub(crate) type Program = fn(Builder) -> Builder;

/// Keys of which changes are seen in one scene.
pub(crate) struct Group {
    pub(crate) scene: fn(Live) -> Shown,
    pub(crate) program: Program,
    /// The configuration without the key, as JSON.
    pub(crate) base: &'static str,
    pub(crate) rows: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

/// Declares groups: `scene, base { "key" = "value" => "before" => "after"; … }`, with `in program` behind the
/// scene where the program adds something, and `(…)` where the scene takes more than the stack.
macro_rules! rows {
    ($($($scene:ident)::+ $(($($arg:expr),*))? $(, in $program:path)?, $base:literal { $($key:tt = $value:literal => $before:literal => $after:literal;)* })*) => {
        &[$($crate::settings::bench::Group {
            scene: |live| Box::pin($($scene)::+(live $(, $($arg),*)?)),
            program: [$($program as $crate::settings::bench::Program,)? $crate::settings::bench::as_it_is][0],
            base: $base,
            rows: &[$(($key, $value, $before, $after),)*],
        },)*]
    };
}
pub(crate) use rows;

/// Adds nothing.
pub(crate) fn as_it_is(builder: Builder) -> Builder {
    builder
}

impl Group {
    pub(crate) fn rows(&'static self) -> impl Iterator<Item = Row> {
        self.rows.iter().map(move |&(key, value, before, after)| Row {
            group: self,
            key,
            value,
            seen: (before, after),
        })
    }
}

impl Row {
    /// The configuration without the key and with it, where `name` is the key's last part.
    pub(crate) fn configs(&self, key: &str) -> [Value; 2] {
        let base: Value = serde_json::from_str(self.group.base).expect(self.key);
        let value: Value = serde_json::from_str(self.value).expect(self.key);
        let (mut without, mut with) = (base.clone(), base);
        let path: Vec<_> = key.split('.').collect();
        // A tool of which nothing is said is there, too.
        if let Some(named) = path.iter().position(|part| *part == "*") {
            put(&mut without, &path[..=named], None);
        }
        put(&mut with, &path, Some(value));
        [without, with]
    }

    pub(crate) async fn show(&self, config: &Value) -> String {
        let config = Config::from_json(&config.to_string()).unwrap_or_else(|e| panic!("{e}"));
        let live = Live::new(config, self.group.program).unwrap_or_else(|e| panic!("{e}"));
        (self.group.scene)(live).await
    }
}

/// Puts a value at a place; a name that is free is `t`. Without a value, makes the table.
fn put(at: &mut Value, path: &[&str], value: Option<Value>) {
    let [name, rest @ ..] = path else {
        match value {
            Some(value) => *at = value,
            None if !at.is_object() => *at = json!({}),
            None => {}
        }
        return;
    };
    if !at.is_object() {
        *at = json!({});
    }
    put(&mut at[if *name == "*" { "t" } else { name }], rest, value);
}

/// A stack around a scripted tool.
pub(crate) struct Bench {
    pub(crate) live: Live,
    pub(crate) handle: Handle<ToolCall>,
    pub(crate) tool: Guarded<ScriptedTool>,
}

pub(crate) fn bench(live: Live, steps: impl IntoIterator<Item = Step<ToolOutcome>>) -> Bench {
    let tool = ScriptedTool::script(steps).then_repeat_last();
    let handle = tool.handle();
    let tool = live.stack().service(tool);
    Bench { live, handle, tool }
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Bench {
    /// A call of the tool `t` in a session, with the declarations of the configuration.
    pub(crate) fn call(&self, effect: Effect) -> ToolCall {
        self.call_with(effect, "{}")
    }

    pub(crate) fn call_with(&self, effect: Effect, params: &str) -> ToolCall {
        let call = ToolCall::new("t", Params::from_text(params).unwrap());
        self.live.catalog().manifested(call.effect(effect).session("s"))
    }

    pub(crate) async fn run(&self, call: ToolCall) -> String {
        word(self.tool.clone().oneshot(call).await)
    }

    /// When the attempts of a call began, in milliseconds.
    pub(crate) async fn starts(&self, call: ToolCall) -> String {
        self.run(call).await;
        let starts = self.handle.starts();
        let first = starts[0];
        let starts: Vec<_> =
            starts.iter().map(|start| (*start - first).as_millis().to_string()).collect();
        starts.join(" ")
    }

    pub(crate) fn state(&self) -> BreakerState {
        let breaker = self.live.stack().breakers().get(KeyRef::new("t"));
        breaker.map_or(BreakerState::Closed, |breaker| breaker.state())
    }

    /// Calls of different params and turns until the breaker opens.
    pub(crate) async fn opens(&self, effect: Effect) -> String {
        for n in 1..=60 {
            let call = self.call_with(effect, &format!(r#"{{"n": {n}}}"#));
            self.run(call.turn(n.to_string())).await;
            if self.state() == BreakerState::Open {
                let breaker = self.live.stack().breakers().get(KeyRef::new("t")).unwrap();
                let left = breaker.time_left().unwrap().as_millis();
                return format!("{n} calls, {left} ms");
            }
        }
        "never".to_owned()
    }

    /// How long a call took, and how it ended.
    pub(crate) async fn timed(&self, call: ToolCall) -> String {
        let began = Instant::now();
        let end = self.run(call).await;
        format!("{end} after {} ms", began.elapsed().as_millis())
    }
}

/// How a call ended, in a word.
pub(crate) fn word(end: Result<ToolOutcome, BoxError>) -> String {
    match end {
        Ok(outcome) if outcome.from_cache() => "cached".to_owned(),
        Ok(outcome) => match outcome.error() {
            None => "ok".to_owned(),
            Some(error) => error.code.to_string(),
        },
        Err(error) => {
            failure_info(&*error).map_or_else(|| error.to_string(), |info| info.code().to_owned())
        }
    }
}
