//! What is said of sessions.
use super::bench::{Bench, Group, bench, rows};
use std::future::ready;
use tool_reliability::{
    Builder,
    config::Live,
    integrity::{
        Format, ModelCall, ModelGuardLayer, Operation, Sessions,
        store::{Entry, Head, Revision, SessionStore, StoreError, StoreFuture},
    },
};
use tower::{Layer as _, ServiceExt, service_fn};
use tr_core::{BoxError, Effect, Ran, ToolCall, Verdict};
use tr_testkit::calls::{answers, fails};

pub(crate) const ROWS: &[Group] = rows! {
    recorded, "{}" {
        "sessions.format" = "\"openai_chat\"" => "no sessions" => "2 messages, role tool";
    }
    recorded, r#"{"sessions": {"format": "openai_chat"}}"# {
        "sessions.enabled" = "false" => "2 messages, role tool" => "0 messages";
    }
    failed_cycle, r#"{"sessions": {}}"# {
        "sessions.mode" = "\"rollback\"" => "2 messages" => "0 messages";
    }
    incidents, r#"{"sessions": {}}"# {
        "sessions.verbose" = "true" => "0 incidents" => "4 incidents";
    }
    checkpoints, r#"{"sessions": {}}"# {
        "sessions.checkpoint_retention" = "1" => "3 kept" => "1 kept";
    }
    restored, r#"{"sessions": {}}"# {
        "sessions.snapshot_messages" = "true" => "not restored" => "restored";
    }
    corrupt, r#"{"sessions": {}}"# {
        "sessions.validate_before_call" = "false" => "refused" => "sent as it is";
        "sessions.auto_repair" = "true" => "refused" => "sent repaired";
    }
    store_away, in with_store, r#"{"sessions": {}}"# {
        "sessions.when_store_fails" = "\"run\"" => "0 runs" => "1 runs";
    }
};

fn with_store(builder: Builder) -> Builder {
    let sessions = Sessions::builder(Format::AnthropicMessages).store(Away).build().unwrap();
    builder.sessions(sessions)
}

fn used(bench: &Bench) -> ToolCall {
    bench.call(Effect::Mutating).tool_call_id("toolu_1")
}

fn messages(live: &Live) -> String {
    let Some(sessions) = live.stack().sessions() else { return "no sessions".to_owned() };
    sessions.with("s", |session, _| {
        let count = session.transcript().len();
        match session.transcript().to_json().contains(r#""role":"tool""#) {
            true => format!("{count} messages, role tool"),
            false => format!("{count} messages"),
        }
    })
}

async fn recorded(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    bench.run(used(&bench)).await;
    messages(&bench.live)
}

async fn failed_cycle(live: Live) -> String {
    let bench = bench(live, [fails("broken", Verdict::Permanent, Ran::Yes)]);
    bench.run(used(&bench)).await;
    messages(&bench.live)
}

async fn incidents(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    bench.run(used(&bench)).await;
    let sessions = bench.live.stack().sessions().unwrap();
    let count = sessions.with("s", |session, _| session.incidents().count());
    format!("{count} incidents")
}

/// How many of three committed checkpoints are kept.
async fn checkpoints(live: Live) -> String {
    let sessions = live.stack().sessions().unwrap();
    sessions.with("s", |session, now| {
        for _ in 0..3 {
            let id = session.checkpoint(Operation::Manual, now).id;
            session.commit(&id, now).unwrap();
        }
        format!("{} kept", session.checkpoints().len())
    })
}

/// A return to the messages of a checkpoint.
async fn restored(live: Live) -> String {
    let sessions = live.stack().sessions().unwrap();
    let message = Format::AnthropicMessages.read(r#"{"role":"user","content":"hi"}"#).unwrap();
    sessions.with("s", |session, now| {
        session.push(message);
        let id = session.checkpoint(Operation::Manual, now).id;
        match session.restore(&id, now) {
            Ok(()) => "restored".to_owned(),
            Err(_) => "not restored".to_owned(),
        }
    })
}

/// A request to the model with a use of a tool that nothing answers.
async fn corrupt(live: Live) -> String {
    const BODY: &str = r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"t","input":{}}]},{"role":"user","content":"and?"}]}"#;
    let model = service_fn(async |call: ModelCall| {
        let is_same = call.body.matches("toolu_1").count() == 1;
        let said = if is_same { "sent as it is" } else { "sent repaired" };
        Ok::<_, BoxError>(format!(
            r#"{{"role":"assistant","content":"{said}","stop_reason":"end_turn"}}"#
        ))
    });
    let sessions = live.stack().sessions().unwrap().clone();
    let guarded = ModelGuardLayer::new(sessions).layer(model);
    match guarded.oneshot(ModelCall::new("s", BODY)).await {
        Err(_) => "refused".to_owned(),
        Ok(answer) if answer.contains("sent repaired") => "sent repaired".to_owned(),
        Ok(_) => "sent as it is".to_owned(),
    }
}

async fn store_away(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    bench.run(used(&bench)).await;
    format!("{} runs", bench.handle.calls())
}

/// A store that can be read, and not written.
#[derive(Debug)]
struct Away;

fn away<'s, T: Send + 's>() -> StoreFuture<'s, T> {
    Box::pin(ready(Err(StoreError::unreachable("no route to it"))))
}

impl SessionStore for Away {
    fn load<'s>(&'s self, _: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        Box::pin(ready(Ok(Vec::new())))
    }
    fn append<'s>(&'s self, _: &'s str, _: Option<Revision>, _: &'s Entry) -> StoreFuture<'s, ()> {
        away()
    }
    fn compact<'s>(&'s self, _: &'s str, _: &'s Entry) -> StoreFuture<'s, ()> {
        away()
    }
    fn list<'s>(&'s self, _: Option<&'s str>, _: usize) -> StoreFuture<'s, Vec<Head>> {
        away()
    }
    fn delete<'s>(&'s self, _: &'s str) -> StoreFuture<'s, bool> {
        away()
    }
    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        away()
    }
}
