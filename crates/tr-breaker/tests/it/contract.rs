//! The laws of tower services, own request types, and dropping.
use crate::rig::{Rig, call, ok};
use http::{Request, Response, Uri};
use std::{io::ErrorKind, time::Duration};
use tokio::time::advance;
use tokio_test::task;
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_breaker::{BreakerLayer, Builder, Mode};
use tr_core::{
    BoxError, BreakerState, Classification, DefaultPolicy, Effect, End, KeyRef, Ran, RequestPolicy,
    ResponsePolicy, Verdict,
};
use tr_testkit::{
    drops,
    laws::Laws,
    rounds,
    tool::{Scripted, Step},
};

/// A request of one's own: three answers, two of them a line.
#[derive(Clone, Debug)]
struct Lookup(u64);

impl RequestPolicy<Lookup> for DefaultPolicy {
    fn key<'r>(&self, _: &'r Lookup) -> KeyRef<'r> {
        KeyRef::new("lookup")
    }

    fn effect(&self, _: &Lookup) -> Effect {
        Effect::ReadOnly
    }
}

/// Its response.
#[derive(Clone, Debug, PartialEq)]
struct Found(u64);

impl ResponsePolicy<Found> for DefaultPolicy {
    fn classify<'r>(&self, end: End<'r, Found>) -> Classification<'r> {
        const FAILED: Classification<'static> =
            Classification::new(Verdict::TRANSIENT, Ran::Unknown, "failed");
        end.map_or(FAILED, |_| Classification::SUCCESS)
    }
}

#[test]
fn keeps_the_laws_in_every_mode() {
    let laws = Laws::new(Lookup, |lookup: &Lookup| Found(lookup.0));
    let enforcing = Builder::by_effect();
    let slow = Builder::by_effect().slow_calls(Duration::from_secs(60), 0.5);
    let shadow = BreakerLayer::builder().mode(Mode::Shadow).forced_open(true);
    let disabled = BreakerLayer::builder().mode(Mode::Disabled);
    for builder in [enforcing, slow, shadow, disabled] {
        laws.check(|tool| builder.clone().build().unwrap().layer(tool));
    }
}

#[tokio::test]
async fn guards_http_without_annotations() {
    let layer = BreakerLayer::default();
    let service = layer.layer(service_fn(|req: Request<&'static str>| async move {
        let status = if req.uri().host() == Some("down.example") { 503 } else { 200 };
        Ok::<_, BoxError>(Response::builder().status(status).body(())?)
    }));
    let request = |host| Request::post(format!("http://{host}/x")).body("").unwrap();
    for _ in 0..5 {
        service.clone().oneshot(request("down.example")).await.unwrap();
    }
    let refused = service.clone().oneshot(request("down.example")).await.unwrap_err();
    let text = refused.to_string();
    assert!(
        text.starts_with("circuit breaker of http://down.example is OPEN for another "),
        "{text}"
    );
    service.oneshot(request("up.example")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dead_http_server_leaves_the_breaker_of_its_https_sibling_closed() {
    let layer = BreakerLayer::default();
    let registry = layer.registry().clone();
    let service = layer.layer(service_fn(|req: Request<&'static str>| async move {
        match req.uri().scheme_str() {
            Some("http") => Err(BoxError::from(std::io::Error::from(ErrorKind::ConnectionRefused))),
            _ => Ok(Response::new(())),
        }
    }));
    let post = |uri: &str| service.clone().oneshot(Request::post(uri).body("").unwrap());
    for spelling in ["localhost", "LOCALHOST", "localhost:80", "localhost.", "me:secret@localhost"]
    {
        post(&format!("http://{spelling}/x")).await.unwrap_err();
    }
    let refused = post("http://localhost/x").await.unwrap_err();
    assert!(refused.is::<tr_breaker::error::CircuitOpen>(), "{refused}");
    for up in ["https://localhost/x", "https://localhost:80/x", "ws://localhost/x"] {
        post(up).await.unwrap();
    }
    post("http://localhost:8080/x").await.unwrap_err();

    let uri = Uri::from_static("http://user@Localhost:80/y");
    let by_uri = registry.get(KeyRef::of_uri(&uri)).unwrap();
    let by_name = registry.get(KeyRef::new("http://localhost")).unwrap();
    assert_eq!((by_uri.name(), by_uri.state()), ("http://localhost", BreakerState::Open));
    assert_eq!(by_name.state(), BreakerState::Open);
    let mut names: Vec<_> =
        registry.all().iter().map(|breaker| breaker.name().to_owned()).collect();
    names.sort_unstable();
    let all = [
        "http://localhost",
        "http://localhost:8080",
        "https://localhost",
        "https://localhost:80",
        "ws://localhost",
    ];
    assert_eq!(names, all);
}

#[tokio::test(start_paused = true)]
async fn a_probe_dropped_at_any_await_comes_back() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
    advance(Duration::from_secs(30)).await;
    let tick = Duration::from_millis(1);
    for polls in 0..=3 {
        rig.then([Step::after(tick, Step::after(tick, ok()))]);
        let mut service = rig.service.clone();
        let mut probe = task::spawn(service.ready().await.unwrap().call(call()));
        assert_eq!(rig.breaker().counts().probes, 1);
        for _ in 0..polls {
            let _ = probe.poll();
            advance(tick).await;
        }
        let ended = polls == 3;
        drop(probe);
        let counts = rig.breaker().counts();
        assert_eq!((counts.probes, counts.probe_successes), (0, u32::from(ended)), "{polls} polls");
    }
    assert_eq!(rig.asked.in_flight(), 0);
}

/// The breaker is half open all the time, so that each call asks for one of three permits.
#[tokio::test(start_paused = true)]
async fn calls_dropped_at_random_leave_no_probe_out() {
    let builder = Builder::by_effect().successes_to_close(10_000).max_probes(3);
    let layer = builder.build().unwrap();
    let breaker = layer.registry().breaker(KeyRef::new("lookup"));
    let tool = Scripted::by(|n, lookup: &Lookup| match lookup.0 {
        0 => Step::err("down"),
        _ => (0..n % 4)
            .fold(Step::Ok(Found(lookup.0)), |then, _| Step::after(Duration::from_millis(1), then)),
    });
    let service = layer.layer(tool.unlogged());
    for seed in 0..rounds(2, 2_000) {
        while breaker.state() == BreakerState::Closed {
            service.clone().oneshot(Lookup(0)).await.unwrap_err();
        }
        advance(Duration::from_secs(20)).await;
        let report = drops::at_random(seed, 5_000, || service.clone().oneshot(Lookup(1))).await;
        assert!(report.dropped > 500 && report.finished > 500, "{report:?}");
        let counts = breaker.counts();
        assert_eq!((breaker.state(), counts.probes), (BreakerState::HalfOpen, 0));
        assert!(counts.probe_successes > 100);
        breaker.reset();
    }
}

#[test]
fn settings_are_refused_with_all_faults_named() {
    let faults = |builder: Builder| {
        let error = builder.build().unwrap_err();
        error.faults().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = BreakerLayer::builder()
        .consecutive_failures(0)
        .failure_rate(f64::NAN)
        .cooldown(Duration::ZERO)
        .window(0)
        .min_calls(0)
        .rolling(Duration::MAX)
        .max_probes(0)
        .successes_to_close(u32::MAX)
        .probe_lease(Duration::ZERO)
        .cooldown_jitter(1.5)
        .ramp(Duration::ZERO)
        .slow_calls(Duration::from_nanos(1), f64::INFINITY)
        .capacity(0);
    let text = all.clone().build().unwrap_err().to_string();
    assert_eq!(
        text,
        "invalid breaker configuration: \
         `consecutive_failures` is 0, must be 1 to 10000; \
         `failure_rate` is NaN, must be more than 0, at most 1; \
         `cooldown` is 0ns, must be 1ms to 31536000s; \
         `window` is 0, must be 1 to 10000; \
         `min_calls` is 0, must be 1 to 1; \
         `rolling` is 18446744073709551615.999999999s, must be 1ms to 31536000s; \
         `max_probes` is 0, must be 1 to 10000; \
         `successes_to_close` is 4294967295, must be 1 to 10000; \
         `capacity` is 0, must be 1 to 1000000; \
         `probe_lease` is 0ns, must be 1ms to 31536000s; \
         `cooldown_jitter` is 1.5, must be more than 0, at most 1; \
         `ramp` is 0ns, must be 1ms to 31536000s; \
         `slow_calls, longer than` is 1ns, must be 1ms to 31536000s; \
         `slow_calls, rate` is inf, must be more than 0, at most 1"
    );
    assert_eq!(faults(all).len(), 14);

    for rate in [0.0, -0.5, 1.000_001, f64::NEG_INFINITY] {
        assert_eq!(faults(BreakerLayer::builder().failure_rate(rate)).len(), 1, "{rate}");
    }
    let more = faults(BreakerLayer::builder().min_calls(21));
    assert_eq!(more, ["`min_calls` is 21, must be 1 to 20"]);
    let none = faults(BreakerLayer::builder().consecutive_failures(None).failure_rate(None));
    assert_eq!(none, ["no threshold is set: set `consecutive_failures` or `failure_rate`"]);
    let both = faults(BreakerLayer::builder().forced_open(true).mode(Mode::Disabled));
    assert_eq!(both, ["`forced_open` and `Mode::Disabled` contradict each other: set only one"]);
    let mut change = tr_core::manifest::BreakerOverride::default();
    change.cooldown = Some(Duration::MAX);
    let of_effect = faults(BreakerLayer::builder().for_effect(Effect::Mutating, change));
    assert!(of_effect[0].starts_with("`cooldown for Mutating` is "), "{of_effect:?}");
}

#[test]
fn the_defaults_are_the_specified_ones_and_the_presets_are_good() {
    for builder in
        [BreakerLayer::builder(), Builder::by_effect(), Builder::close_on_first_success()]
    {
        let debug = format!("{builder:?}");
        for default in [
            "window: 20",
            "min_calls: 10",
            "rolling: Some(120s)",
            "max_probes: 1",
            "capacity: 10000",
        ] {
            assert!(debug.contains(default), "{default} in {debug}");
        }
        builder.build().unwrap();
    }
}
