//! Which calls share a breaker, and what is kept of them.
use crate::rig::{Rig, failure, ok};
use std::{sync::Arc, thread};
use tower::{Layer, Service, ServiceExt};
use tr_breaker::{BreakerLayer, Builder};
use tr_core::{
    BoxError, BreakerHint,
    BreakerState::{Closed, Open},
    CallParts, Classification, Effect, End, KeyRef, Params, Ran, RequestPolicy, ResponsePolicy,
    ToolCall, ToolId, ToolManifest, Verdict,
};
use tr_testkit::tool::{Scripted, Step};

fn call(tool: &str) -> ToolCall {
    ToolCall::new(tool, Params::empty_object())
}

async fn fail(rig: &Rig, calls: impl IntoIterator<Item = ToolCall>) {
    for call in calls {
        rig.then([failure("timeout")]);
        let _ = rig.service.clone().oneshot(call).await;
    }
}

async fn succeed(rig: &Rig, call: ToolCall) {
    rig.then([ok()]);
    rig.service.clone().oneshot(call).await.unwrap();
}

fn names(layer: &BreakerLayer) -> Vec<String> {
    let mut names: Vec<_> =
        layer.registry().all().iter().map(|breaker| breaker.name().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn each_tool_has_a_breaker_of_its_own_and_actions_are_tools() {
    let rig = Rig::new(Builder::close_on_first_success());
    let action = |action| {
        ToolCall::new(
            ToolId::from_parts(Some("ns"), "message", Some(action)),
            Params::empty_object(),
        )
    };
    fail(&rig, (0..5).map(|_| action("send"))).await;
    succeed(&rig, action("read")).await;
    assert_eq!(names(&rig.layer), ["ns/message.read", "ns/message.send"]);
    let state =
        |action: &ToolCall| rig.layer.registry().get(action.parts().tool.key()).unwrap().state();
    assert_eq!((state(&action("send")), state(&action("read"))), (Open, Closed));
    let heard = rig.heard.take();
    assert_eq!(heard, ["ns/message.send ns/message.send: CLOSED to OPEN"], "label and key");
}

#[tokio::test]
async fn calls_share_a_breaker_by_their_hint() {
    let hinted = |tool: &str, hint| {
        let mut manifest = ToolManifest::new(tool);
        manifest.dependency = Some("geo-api".into());
        let mut call = call(tool).manifested(Arc::new(manifest));
        let parts: &mut CallParts = call.parts_mut();
        parts.breaker = Some(hint);
        call
    };
    for (hint, name) in [(BreakerHint::Dependency, "geo-api"), (BreakerHint::Global, "global")] {
        let rig = Rig::new(Builder::close_on_first_success());
        fail(&rig, ["a", "b", "c", "d", "e"].map(|tool| hinted(tool, hint))).await;
        assert_eq!(names(&rig.layer), [name]);
        assert_eq!(rig.layer.registry().all()[0].state(), Open);
        assert_eq!(rig.heard.take(), [format!("{name} {name}: CLOSED to OPEN")]);
    }
}

#[tokio::test]
async fn a_manifest_has_the_last_word_and_nonsense_in_it_has_none() {
    for (consecutive, opens_at) in [(Some(2), 2), (Some(0), 8), (None, 8)] {
        let rig = Rig::new(Builder::by_effect());
        let mut manifest = ToolManifest::new("search");
        manifest.effect = Some(Effect::ReadOnly);
        manifest.breaker.consecutive = consecutive;
        let call = call("search").manifested(Arc::new(manifest));
        let mut failures = 0;
        loop {
            fail(&rig, [call.clone()]).await;
            failures += 1;
            if rig.layer.registry().all()[0].state() == Open {
                break;
            }
        }
        assert_eq!(failures, opens_at);
    }
}

#[tokio::test]
async fn past_its_capacity_a_quiet_breaker_makes_room() {
    let rig = Rig::new(Builder::close_on_first_success().capacity(3));
    for tool in ["a", "b", "c", "d", "e", "f", "g"] {
        succeed(&rig, call(tool)).await;
        assert!(rig.layer.registry().all().len() <= 3);
    }
    assert_eq!(names(&rig.layer), ["a", "f", "g"], "the first stays");
    assert_eq!(rig.layer.registry().overflow().counts().calls, 0);
}

#[tokio::test(start_paused = true)]
async fn what_remembers_failures_or_is_in_use_is_not_evicted() {
    let rig = Rig::new(Builder::close_on_first_success().capacity(4));
    fail(&rig, [call("failed")]).await;
    fail(&rig, (0..5).map(|_| call("open"))).await;
    let held = rig.layer.registry().breaker(KeyRef::new("held"));
    rig.then([Step::Hang]);
    let running = tokio::spawn(rig.service.clone().oneshot(call("running")));
    tokio::task::yield_now().await;

    fail(&rig, (0..4).map(|n| call(&format!("new {n}")))).await;
    assert_eq!(names(&rig.layer), ["failed", "held", "open", "running"]);
    let overflow = rig.layer.registry().overflow();
    assert_eq!((overflow.name(), overflow.counts().consecutive_failures), ("_overflow", 0));
    fail(&rig, (0..20).map(|n| call(&format!("another {n}")))).await;
    assert_eq!(overflow.state(), Closed, "what some keys do says nothing of the others");
    assert_eq!(rig.heard.take().iter().filter(|line| line.contains("uncounted")).count(), 24);

    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    succeed(&rig, call("new")).await;
    assert_eq!(names(&rig.layer), ["failed", "held", "new", "open"]);
    drop(held);
    succeed(&rig, call("newer")).await;
    assert_eq!(rig.layer.registry().all().len(), 4);
    assert!(rig.layer.registry().get(KeyRef::new("failed")).is_some());

    // Forgotten failures hold nobody back.
    tokio::time::advance(std::time::Duration::from_secs(121)).await;
    for n in 0..8 {
        succeed(&rig, call(&format!("late {n}"))).await;
    }
    assert_eq!(names(&rig.layer), ["failed", "late 6", "late 7", "open"]);
}

/// Keys of one hash, told apart by name.
#[derive(Clone, Copy, Debug)]
struct Colliding;

impl RequestPolicy<&'static str> for Colliding {
    fn key<'r>(&self, name: &'r &'static str) -> KeyRef<'r> {
        KeyRef::hashed(7, name)
    }

    fn effect(&self, _: &&'static str) -> Effect {
        Effect::Mutating
    }
}

impl ResponsePolicy<()> for Colliding {
    fn classify<'r>(&self, end: End<'r, ()>) -> Classification<'r> {
        let failed = Classification::new(Verdict::TRANSIENT, Ran::Unknown, "failed");
        end.map_or(failed, |()| Classification::SUCCESS)
    }
}

#[tokio::test]
async fn keys_of_one_hash_are_told_apart_by_name() {
    let layer = Builder::close_on_first_success().capacity(2).policy(Colliding).build().unwrap();
    let service = layer.layer(Scripted::by(|_, name: &&'static str| match *name {
        "bad" => Step::err("down"),
        _ => Step::Ok(()),
    }));
    for _ in 0..5 {
        service.clone().oneshot("bad").await.unwrap_err();
    }
    for name in ["good", "other", "good"] {
        service.clone().oneshot(name).await.unwrap();
    }
    let state = |name| layer.registry().get(KeyRef::hashed(7, name)).map(|breaker| breaker.state());
    assert_eq!((state("bad"), state("good"), state("other")), (Some(Open), Some(Closed), None));
}

/// Calls from four threads at the same time.
fn from_four_threads<S>(service: &S, call: impl Fn(usize, usize) -> &'static str + Sync)
where
    S: Service<&'static str, Response = (), Error = BoxError> + Clone + Send + Sync,
{
    thread::scope(|scope| {
        for thread in 0..4 {
            let (service, call) = (service.clone(), &call);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    for n in 0..2_000 {
                        let _ = service.clone().oneshot(call(thread, n)).await;
                    }
                });
            });
        }
    });
}

#[test]
fn threads_lose_no_call() {
    let never = Builder::close_on_first_success().consecutive_failures(10_000).failure_rate(None);
    let layer = never.window(10_000).policy(Colliding).build().unwrap();
    let tool = Scripted::by(|n, _: &&'static str| match n % 8 {
        7 => Step::err("down"),
        _ => Step::Ok(()),
    });
    from_four_threads(&layer.layer(tool.unlogged()), |_, _| "tool");
    let counts = layer.registry().get(KeyRef::hashed(7, "tool")).unwrap().counts();
    assert_eq!((counts.calls, counts.failures), (8_000, 1_000));
}

#[test]
fn threads_agree_while_breakers_come_and_go() {
    let layer = Builder::close_on_first_success().capacity(8).policy(Colliding).build().unwrap();
    let tool = Scripted::by(|_, name: &&'static str| match *name {
        "a" => Step::err("down"),
        _ => Step::Ok(()),
    });
    let asked = tool.handle();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let service = layer.layer(tool);
    from_four_threads(&service, |thread, n| names[n * (thread + 1) % 12]);
    assert!(layer.registry().all().len() <= 8);
    let bad = layer.registry().get(KeyRef::hashed(7, "a")).expect("it remembers failures");
    assert_eq!(bad.state(), Open);
    let failed = asked.requests().iter().filter(|name| **name == "a").count();
    assert!((5..5 + 4).contains(&failed), "{failed}: those in flight when it opened, and no more");
}

/// Breakers that stood there before have left their mark on the generations, and on nothing else.
#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_cooldowns_whoever_was_there_before() {
    let mut drawn = Vec::new();
    for _ in 0..4 {
        let builder = Builder::close_on_first_success().cooldown_jitter(0.5).seed(7);
        let rig = Rig::new(builder).opened().await;
        let first = rig.breaker().time_left().unwrap();
        rig.breaker().reset();
        let rig = rig.opened().await;
        drawn.push((first, rig.breaker().time_left().unwrap()));
    }
    assert!(drawn[0].0 != drawn[0].1, "{drawn:?}");
    assert!(drawn.iter().all(|pair| *pair == drawn[0]), "{drawn:?}");
}
