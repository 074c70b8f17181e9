//! What one process decides of a breaker, the others do too.
use crate::peer::{Peer, until};
use std::time::Duration;
use tokio::time::Instant;
use tr_breaker::{BreakerHandle, BreakerLayer, Mode};
use tr_core::{BreakerState, ToolId};
use tr_testkit::{redis::Server, rounds};

#[tokio::test]
async fn a_tripped_breaker_is_seen_by_the_others_within_a_second() {
    let server = Server::start().unwrap();
    // They look so rarely that it is the bell which makes it.
    let (cooldown, every) = (Duration::from_secs(30), Duration::from_secs(4));
    let a = Peer::with(&server.url(), cooldown, every).connected().await;
    let b = Peer::with(&server.url(), cooldown, every).connected().await;
    let mut took = Vec::new();
    for round in 0..rounds(20, 1_000) {
        let tool = format!("tool-{round}");
        let breaker = b.breaker(&tool);
        a.trip(&tool).await;
        let tripped = Instant::now();
        b.state_becomes(&tool, BreakerState::Open).await;
        took.push(tripped.elapsed());
        assert!(!b.call(&tool).await, "refused, without a failure of its own");
        let left = breaker.time_left().unwrap();
        assert!(left > Duration::from_secs(25) && left <= Duration::from_secs(30), "{left:?}");
    }
    took.sort();
    let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
    println!("seen after {median:?}, at worst {worst:?}");
    // A busy machine may delay some.
    assert!(median < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn what_is_ordered_by_hand_travels() {
    let server = Server::start().unwrap();
    let a = Peer::new(&server.url()).connected().await;
    let b = Peer::new(&server.url()).connected().await;
    let (here, there) = (a.breaker("tool"), b.breaker("tool"));

    here.force_open();
    b.state_becomes("tool", BreakerState::ForcedOpen).await;
    assert!(!b.call("tool").await);

    // Taken back by another one than ordered it.
    there.reset();
    a.state_becomes("tool", BreakerState::Closed).await;
    assert!(a.call("tool").await);

    for (mode, order) in [
        (Mode::Disabled, BreakerHandle::disable as fn(&BreakerHandle)),
        (Mode::Shadow, BreakerHandle::shadow),
        (Mode::Enforce, BreakerHandle::reset),
    ] {
        order(&here);
        until(|| format!("{mode:?}"), || (there.mode() == mode).then_some(())).await;
    }
}

#[tokio::test]
async fn who_starts_later_takes_over_what_the_others_know() {
    let server = Server::start().unwrap();
    let a = Peer::new(&server.url()).connected().await;
    a.trip("open").await;
    a.breaker("forced").force_open();
    a.breaker("disabled").disable();
    let keys = || server.command(["HLEN", "tr-breaker:{tests}:v1:state"]).unwrap().int();
    until(|| format!("{:?}", keys()), || (keys() == Some(3)).then_some(())).await;

    let b = Peer::new(&server.url()).connected().await;
    // Their breakers are made by the first call, or question.
    assert!(!b.call("open").await);
    assert_eq!(b.breaker("forced").state(), BreakerState::ForcedOpen);
    assert_eq!(b.breaker("disabled").mode(), Mode::Disabled);
    assert!(b.call("other").await);
}

#[tokio::test]
async fn a_name_of_several_parts_is_found() {
    let server = Server::start().unwrap();
    let a = Peer::new(&server.url()).connected().await;
    let b = Peer::new(&server.url()).connected().await;
    let tool = ToolId::from_parts(Some("agents"), "message", Some("send"));
    let there = b.layer.registry().breaker(tool.key());
    a.layer.registry().breaker(tool.key()).force_open();
    let is_forced = || (there.state() == BreakerState::ForcedOpen).then_some(());
    until(|| format!("{there:?}"), is_forced).await;
}

#[tokio::test]
async fn one_process_probes_and_all_close() {
    let server = Server::start().unwrap();
    // Long enough that the other one sees it open again, however busy the machine is.
    let (cooldown, every) = (Duration::from_secs(2), Duration::from_millis(500));
    let a = Peer::with(&server.url(), cooldown, every).connected().await;
    let b = Peer::with(&server.url(), cooldown, every).connected().await;
    let there = b.breaker("tool");
    a.trip("tool").await;
    a.state_becomes("tool", BreakerState::HalfOpen).await;
    b.state_becomes("tool", BreakerState::HalfOpen).await;

    assert!(a.call("tool").await, "a probe");
    b.state_becomes("tool", BreakerState::Open).await;
    a.mend_tool();
    a.state_becomes("tool", BreakerState::HalfOpen).await;
    assert!(a.call("tool").await, "another probe");
    b.state_becomes("tool", BreakerState::Closed).await;
    assert_eq!(there.counts().calls, 0);
}

#[tokio::test]
async fn a_bell_that_is_lost_is_made_up_for() {
    let server = Server::start().unwrap();
    let key = |what: &str| format!("tr-breaker:{{tests}}:v1:{what}");
    server.command(["HSET", &key("meta"), "era", "other", "revision", "1"]).unwrap();
    let a = Peer::new(&server.url()).connected().await;
    // As a process writes it whose notifications are lost.
    let micros = |seconds: u64| {
        let time = server.command(["TIME"]).unwrap().to_string();
        let (whole, _) = time.split_once(' ').unwrap();
        (whole.parse::<u64>().unwrap() + seconds) * 1_000_000
    };
    let (now, until) = (micros(0).to_string(), micros(30).to_string());
    let revision = micros(1).to_string();
    let entry = format!("1 {now} other {now} {until} open set");
    let before = looks(&server);
    server
        .command(["EVAL", "redis.call('HSET', KEYS[1], 'tool', ARGV[1]) redis.call('ZADD', KEYS[2], ARGV[2], 'tool') redis.call('HSET', KEYS[3], 'revision', ARGV[2])",
            "3", &key("state"), &key("log"), &key("meta"), &entry, &revision])
        .unwrap();
    a.state_becomes("tool", BreakerState::Open).await;
    // It polls every half second, and the next poll finds it; one poll may have been in flight.
    let needed = looks(&server) - before;
    assert!((1..=2).contains(&needed), "{needed} looks");
}

/// How often the breakers poll Redis, without notifications.
fn looks(server: &Server) -> u32 {
    let stats = server.command(["INFO", "commandstats"]).unwrap().to_string();
    let calls =
        stats.split_once("cmdstat_evalsha:calls=").and_then(|(_, rest)| rest.split_once(','));
    calls.map_or(0, |(calls, _)| calls.parse().unwrap())
}

#[tokio::test]
async fn what_a_configuration_forces_open_is_its_own() {
    let server = Server::start().unwrap();
    let a = Peer::new(&server.url()).connected().await;
    let forced = BreakerLayer::builder().forced_open(true).build().unwrap();
    let b = Peer::of(forced, &server.url(), Duration::from_millis(500)).connected().await;
    let there = b.breaker("tool");
    assert_eq!(there.state(), BreakerState::ForcedOpen);
    // What one tells after the other's word was in Redis, it tells after it has read that word.
    let answered = async |word: &str, answer: &str| {
        let told = || server.command(["HGET", "tr-breaker:{tests}:v1:state", "tool"]).unwrap();
        let has_word = || told().text().is_some_and(|entry| entry.contains(word)).then_some(());
        until(|| format!("{word} in {:?}", told()), has_word).await;
        b.breaker(answer).disable();
        let here = a.breaker(answer);
        let is_there = || (here.mode() == Mode::Disabled).then_some(());
        until(|| format!("{here:?}"), is_there).await;
    };
    a.trip("tool").await;
    answered(" open ", "one").await;
    assert_eq!(there.state(), BreakerState::ForcedOpen);
    assert_eq!(a.breaker("tool").state(), BreakerState::Open);
    a.breaker("tool").reset();
    answered(" closed ", "two").await;
    assert_eq!(there.state(), BreakerState::ForcedOpen);
    assert_eq!(a.breaker("tool").state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_fleet_that_is_gone_leaves_nothing_for_ever() {
    let server = Server::start().unwrap();
    let a = Peer::new(&server.url()).connected().await;
    a.breaker("tool").force_open();
    let keys = || server.command(["DBSIZE"]).unwrap().int();
    until(|| format!("{:?}", keys()), || (keys() == Some(3)).then_some(())).await;
    for what in ["state", "log", "meta"] {
        let ttl = server.command(["TTL", &format!("tr-breaker:{{tests}}:v1:{what}")]).unwrap();
        assert!((1..=86_400).contains(&ttl.int().unwrap()), "{what}: {ttl}");
    }
}
