//! Guards, servers and clients are killed at random moments of payments; each payment is made once at most.
#![cfg(target_os = "linux")]

mod agent;
mod call;
mod checks;
mod listening;
mod payment;
mod process;
mod round;
mod shop;
mod tally;
#[path = "../mcp-http/wire.rs"]
#[expect(dead_code, reason = "a test reads and writes more forms than these clients")]
mod wire;

use call::{Answer, Call};
use fastrand::Rng;
use process::{Heard, PATIENCE, now, until};
use round::Pace;
use serde_json::json;
use shop::{Shop, Way};
use std::{
    collections::BTreeMap,
    env,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tally::Tally;
use tr_testkit::{redis::Server, rounds};

/// Sets another seed than the usual one.
const SEED: &str = "TR_KILLS_SEED";

/// Every so many rounds one begins with records, and a measure of this machine's pace, of its own.
const ROUNDS_OF_A_SHOP: u64 = 20;

/// For how long a killed guard's calls bind in Redis, where many are waited for.
const SHORT_LEASE: Duration = Duration::from_secs(3);

fn seed() -> u64 {
    env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(15)
}

/// Plays all rounds, so many at the same time, over each of these ways in turn.
fn play(rounds: u64, lanes: u64, ways: &[Way], open: impl Fn() -> Shop + Sync) -> Tally {
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let total = Mutex::new(Tally::default());
    let seed = seed();
    let lane = || {
        let mut shop: Option<(Shop, BTreeMap<Way, Pace>)> = None;
        while !failed.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            if number >= rounds {
                break;
            }
            if number % ROUNDS_OF_A_SHOP == 0 {
                shop = None;
            }
            let (shop, paces) = shop.get_or_insert_with(|| (open(), BTreeMap::new()));
            let way = ways[usize::try_from(number).unwrap() % ways.len()];
            let pace = *paces.entry(way).or_insert_with(|| pace(shop, way).unwrap());
            let rng = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number));
            let play = if way.is_listening() { listening::play } else { round::play };
            match play(shop, way, pace, rng, number) {
                Ok(tally) => total.lock().unwrap_or_else(PoisonError::into_inner).add(&tally),
                Err(wrong) => {
                    failed.store(true, Relaxed);
                    panic!("seed {seed}, {wrong}");
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..lanes.min(rounds) {
            scope.spawn(lane);
        }
    });
    let total = total.into_inner().unwrap();
    println!("seed {seed}\n{total}");
    total
}

/// Measures one calm round.
fn pace(shop: &Shop, way: Way) -> Result<Pace, String> {
    if way.is_listening() { listening::pace(shop, way) } else { Pace::of(shop, way) }
}

#[test]
fn a_payment_recorded_in_sqlite_survives_random_kills() {
    let rounds = rounds(300, 10_000);
    let total = play(rounds, 6, &[Way::StdioCommand], Shop::with_sqlite);
    total.assert_meaningful(rounds);
}

#[test]
fn a_payment_over_http_recorded_in_sqlite_survives_random_kills() {
    let rounds = rounds(120, 10_000);
    let total = play(rounds, 6, &Way::OVER_HTTP, Shop::with_sqlite);
    total.assert_meaningful(rounds);
    total.assert_meaningful_over_http();
}

#[test]
fn a_payment_recorded_in_redis_survives_random_kills() {
    let rounds = rounds(12, 2_000);
    let redis = redis();
    let total = play(rounds, 12, &[Way::StdioCommand], || {
        Shop::with_redis(&redis.url()).leasing(SHORT_LEASE)
    });
    assert_eq!(total.rounds, rounds);
}

#[test]
fn a_payment_over_http_recorded_in_redis_survives_random_kills() {
    let rounds = rounds(12, 2_000);
    let redis = redis();
    let total =
        play(rounds, 12, &Way::OVER_HTTP, || Shop::with_redis(&redis.url()).leasing(SHORT_LEASE));
    assert_eq!(total.rounds, rounds);
}

/// On such systems a killed guard is not noticed. Clients give up at 60 s.
#[test]
fn a_payment_of_a_killed_guard_is_known_to_be_unknown_in_redis_when_its_lease_ends() {
    let redis = redis();
    let shop = Shop::with_redis(&redis.url());
    let mark = Shop::mark();
    let meta = json!({ "idempotencyKey": "k" });
    let call = Call::new("order".into(), &meta, (0, 600_000_000));
    let mut guard = shop.open(Way::StdioCommand, &mark, 1, false);
    guard.send(&[call.request(1)]);
    until("it has paid", || (shop.paid("order") == 1).then_some(()));
    guard.kill();

    let begin = now();
    let mut guard = shop.open(Way::StdioCommand, &mark, 2, false);
    guard.send(&[call.request(2)]);
    let answer = loop {
        match guard.hear(begin + PATIENCE) {
            Heard::Line(line) if line["id"] == 2 => break Answer::of(&line, true),
            Heard::Line(_) => {}
            heard => panic!("{heard:?}"),
        }
    };
    assert_eq!(answer, Ok(Answer::Unknown));
    assert!(begin.elapsed() < PATIENCE * 3 / 4, "{:?}", begin.elapsed());
    guard.leave();
    shop.until_empty(&mark);
    assert_eq!(shop.paid("order"), 1);
}

fn redis() -> Server {
    Server::start().expect("`cargo xtask test` installs redis-server")
}
