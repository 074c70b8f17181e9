//! Breakers of what a tool reaches: one for each origin that its params name.
use crate::rig::{Rig, failure, ok};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tower::ServiceExt;
use tr_breaker::{BreakerHandle, Builder, CircuitOpen, Mode};
use tr_core::{
    BreakerHint,
    BreakerState::{self, Closed, ForcedOpen, Open},
    KeyRef, Params, SystemClock, ToolCall, ToolManifest,
};

fn fetch(url: &str) -> ToolCall {
    ToolCall::new("fetch", Params::from(json!({ "url": url, "max": 5 })))
}

fn tool(rig: &Rig) -> BreakerHandle {
    rig.layer.registry().breaker(fetch("").parts().tool.key())
}

fn target(rig: &Rig, url: &str) -> BreakerHandle {
    rig.layer.registry().get(fetch(url).breaker_key()).expect("met")
}

async fn fail(rig: &Rig, times: usize, call: &ToolCall) {
    for _ in 0..times {
        rig.then([failure("connect_error")]);
        let ended = rig.service.clone().oneshot(call.clone()).await;
        if ended.as_ref().is_err_and(|error| error.is::<CircuitOpen>()) {
            rig.steps.lock().unwrap().clear();
        }
    }
}

/// Whether the call passes; if it does not, by which breaker.
async fn refused_by(rig: &Rig, url: &str) -> Option<String> {
    rig.then([ok()]);
    let error = rig.service.clone().oneshot(fetch(url)).await.err()?;
    rig.steps.lock().unwrap().clear();
    Some(error.downcast::<CircuitOpen>().unwrap().breaker().to_owned())
}

fn names(rig: &Rig) -> Vec<String> {
    let mut names: Vec<_> =
        rig.layer.registry().all().iter().map(|one| one.name().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn a_dead_origin_opens_its_own_breaker_and_no_other() {
    let rig = Rig::new(Builder::close_on_first_success());
    fail(&rig, 4, &fetch("http://dead-1.example/a")).await;
    fail(&rig, 4, &fetch("http://dead-2.example/b")).await;
    for n in 0..3 {
        assert_eq!(refused_by(&rig, &format!("https://well.example/{n}")).await, None);
    }
    fail(&rig, 1, &fetch("HTTP://Dead-1.example:80/c")).await;
    let refused = refused_by(&rig, "http://dead-1.example/d").await;
    assert_eq!(refused.as_deref(), Some("fetch http://dead-1.example"));
    assert_eq!(refused_by(&rig, "http://dead-2.example/b").await, None);
    assert_eq!(refused_by(&rig, "https://dead-1.example/").await, None, "another port");
    assert_eq!(
        rig.heard.take(),
        [
            "fetch fetch http://dead-1.example: CLOSED to OPEN",
            "fetch fetch http://dead-1.example: OPEN refuses"
        ],
        "the label is the tool's"
    );
    let hosts = ["http://dead-1.example", "http://dead-2.example"];
    let hosts = hosts.into_iter().chain(["https://dead-1.example", "https://well.example"]);
    let expected: Vec<_> = hosts.map(|host| format!("fetch {host}")).collect();
    assert_eq!(names(&rig), [&["fetch".to_owned()][..], &expected].concat());
    assert_eq!(tool(&rig).counts().calls, 0);
}

#[tokio::test]
async fn a_hint_wins_the_calls_own_before_the_manifests() {
    let hinted = |call: Option<BreakerHint>, manifest: Option<BreakerHint>| {
        let mut known = ToolManifest::new("fetch");
        known.breaker_hint = manifest;
        let mut hinted = fetch("http://a.example/").manifested(Arc::new(known));
        hinted.parts_mut().breaker = call;
        hinted.breaker_key().to_string()
    };
    let (tool, global) = (Some(BreakerHint::Tool), Some(BreakerHint::Global));
    assert_eq!(hinted(None, None), "fetch http://a.example");
    assert_eq!(hinted(tool, None), "fetch");
    assert_eq!(hinted(None, tool), "fetch");
    assert_eq!(hinted(None, global), "global");
    assert_eq!(hinted(tool, global), "fetch");
    assert_eq!(hinted(Some(BreakerHint::Dependency), None), "fetch", "it names none");
}

#[tokio::test(start_paused = true)]
async fn a_manifest_sets_up_the_breakers_of_what_its_tool_reaches() {
    let rig = Rig::new(Builder::close_on_first_success());
    let mut manifest = ToolManifest::new("fetch");
    manifest.breaker.consecutive = Some(2);
    let call = fetch("http://dead.example/").manifested(Arc::new(manifest));
    fail(&rig, 2, &call).await;
    assert_eq!(target(&rig, "http://dead.example/").state(), Open);
}

#[tokio::test(start_paused = true)]
async fn what_is_ordered_for_the_tool_holds_for_all_that_it_reaches() {
    let rig = Rig::new(Builder::close_on_first_success());
    let (dead, well, new) = ("http://dead.example/", "http://well.example/", "http://new.example/");
    assert_eq!(refused_by(&rig, well).await, None);
    fail(&rig, 5, &fetch(dead)).await;
    assert_eq!(target(&rig, dead).state(), Open);

    tool(&rig).force_open();
    for url in [dead, well, new, "none"] {
        assert_eq!(refused_by(&rig, url).await.as_deref(), Some("fetch"), "{url}");
    }
    tool(&rig).set_mode(Mode::Shadow);
    for url in [dead, well, new, "none"] {
        assert_eq!(refused_by(&rig, url).await, None, "{url}");
    }
    tool(&rig).reset();
    for url in [dead, well, new, "none"] {
        assert_eq!(refused_by(&rig, url).await, None, "{url}");
    }
    assert_eq!(target(&rig, dead).state(), Closed);

    fail(&rig, 5, &fetch(dead)).await;
    tool(&rig).set_mode(Mode::Shadow);
    rig.heard.take();
    assert_eq!(refused_by(&rig, dead).await, None);
    assert_eq!(target(&rig, dead).state(), Open);
    assert!(!rig.heard.take().is_empty(), "what it would have refused is told");
    tool(&rig).set_mode(Mode::Disabled);
    fail(&rig, 9, &fetch(new)).await;
    assert_eq!((refused_by(&rig, dead).await, refused_by(&rig, new).await), (None, None));
    tool(&rig).set_mode(Mode::Enforce);
    assert!(refused_by(&rig, dead).await.is_some());
    assert_eq!(refused_by(&rig, new).await, None, "while disabled nothing counts");

    target(&rig, well).force_open();
    assert_eq!(refused_by(&rig, well).await.as_deref(), Some("fetch http://well.example"));
    assert_eq!(refused_by(&rig, new).await, None);
    tool(&rig).reset();
    assert_eq!(refused_by(&rig, well).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_refuses_nothing_or_all_does_so_for_targets_until_the_tool_is_told_otherwise()
{
    let dead = "http://dead.example/";
    for mode in [Mode::Shadow, Mode::Disabled] {
        let rig = Rig::new(Builder::close_on_first_success().mode(mode));
        fail(&rig, 9, &fetch(dead)).await;
        assert_eq!(refused_by(&rig, dead).await, None, "{mode:?}");
        tool(&rig).set_mode(Mode::Enforce);
        fail(&rig, 5, &fetch(dead)).await;
        assert!(refused_by(&rig, dead).await.is_some(), "{mode:?}");
        tool(&rig).reset();
        fail(&rig, 9, &fetch(dead)).await;
        assert_eq!(refused_by(&rig, dead).await, None, "{mode:?}");
    }
    let rig = Rig::new(Builder::close_on_first_success().forced_open(true));
    assert_eq!(refused_by(&rig, dead).await.as_deref(), Some("fetch"));
    tool(&rig).reset();
    assert_eq!(refused_by(&rig, dead).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_was_saved_is_known_again() {
    let before = Rig::new(Builder::close_on_first_success());
    let (dead, well) = ("http://dead.example/", "http://well.example/");
    fail(&before, 5, &fetch(dead)).await;
    let saved = before.layer.registry().save(&SystemClock);
    let after = Rig::new(Builder::close_on_first_success());
    after.layer.registry().restore(&saved, &SystemClock);
    assert_eq!(refused_by(&after, well).await, None);
    assert!(refused_by(&after, dead).await.is_some());

    tool(&before).force_open();
    let saved = before.layer.registry().save(&SystemClock);
    let after = Rig::new(Builder::close_on_first_success());
    after.layer.registry().restore(&saved, &SystemClock);
    assert_eq!(refused_by(&after, well).await.as_deref(), Some("fetch"));
    assert_eq!(tool(&after).state(), ForcedOpen);
}

#[tokio::test(start_paused = true)]
async fn any_number_of_origins_is_bounded_and_none_stays_for_good() {
    let rig = Rig::new(Builder::close_on_first_success().capacity(40));
    for n in 0..200 {
        assert_eq!(refused_by(&rig, &format!("http://host-{n}.example/")).await, None);
        assert!(rig.layer.registry().all().len() <= 40);
    }
    let gone: BreakerState = rig.layer.registry().overflow().state();
    assert_eq!((gone, rig.layer.registry().overflow().counts().calls), (Closed, 0));
    assert!(rig.layer.registry().get(KeyRef::new("fetch")).is_some());
    let first = rig.layer.registry().get(fetch("http://host-0.example/").breaker_key());
    assert!(first.is_none(), "it made room");

    // Those that remember failures make room once these are old.
    for n in 0..60 {
        fail(&rig, 1, &fetch(&format!("http://dead-{n}.example/"))).await;
    }
    assert!(rig.heard.take().iter().any(|line| line.contains("uncounted")));
    tokio::time::advance(Duration::from_secs(121)).await;
    let before = rig.layer.registry().overflow().counts();
    assert_eq!(refused_by(&rig, "http://another.example/").await, None);
    assert_eq!(rig.layer.registry().overflow().counts(), before);
    assert_eq!(rig.heard.take(), [""; 0]);
    assert_eq!(target(&rig, "http://another.example/").counts().calls, 1);
}
