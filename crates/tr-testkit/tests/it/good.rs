//! Layers that keep the laws pass them, tower's own and the plainest of all.

use std::time::Duration;
use tower::{
    limit::ConcurrencyLimit,
    load_shed::LoadShed,
    timeout::Timeout,
    util::{BoxCloneService, MapErr, MapResponse},
};
use tr_testkit::laws::{Law, Laws};

fn laws() -> Laws<u64, u64> {
    Laws::new(|n| n, |request: &u64| request * request)
}

#[test]
fn the_bare_tool() {
    laws().check(|inner| inner);
}

#[test]
fn concurrency_limit() {
    for limit in [1, 2, 100] {
        laws().check(|inner| ConcurrencyLimit::new(inner, limit));
    }
}

#[test]
fn timeout() {
    laws().check(|inner| Timeout::new(inner, Duration::from_secs(1)));
}

#[test]
fn boxed_clones() {
    laws().check(BoxCloneService::new);
}

#[test]
fn mapped_responses() {
    laws().check(|inner| MapResponse::new(MapResponse::new(inner, |r| (r, "!")), |(r, _)| r));
}

#[test]
fn several_on_top_of_one_another() {
    laws().check(|inner| {
        Timeout::new(
            ConcurrencyLimit::new(ConcurrencyLimit::new(inner, 1), 3),
            Duration::from_secs(60),
        )
    });
}

#[test]
fn mapped_errors_have_to_be_declared() {
    let silent = |inner| MapErr::new(inner, |_| "something went wrong");
    let broken = laws().broken(silent);
    assert_eq!(broken.iter().map(|b| b.law).collect::<Vec<_>>(), [Law::KeepsTheSource]);
    laws().maps_errors().check(silent);
    laws().except(Law::KeepsTheSource).check(silent);
}

/// It refuses what it cannot take at once: calls fail that only had to wait.
#[test]
fn load_shedding_is_seen() {
    let broken = laws().broken(|inner| LoadShed::new(ConcurrencyLimit::new(inner, 1)));
    assert!(broken.iter().any(|b| b.law == Law::KeepsAnswersApart), "{broken:?}");
}
