//! Servers that are killed, ways to them that are cut, futures that are dropped: what was
//! confirmed is there, once, and in order.
use crate::writer::{PATIENCE, append, entry, load};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tr_integrity::{
    postgres::Postgres,
    store::{Revision, SessionStore as _, StoreError, StoreErrorKind},
};
use tr_testkit::{faults::Proxy, postgres::Server, rounds};

/// How long a client waits; a busy machine answers within it.
const SHORT: Duration = Duration::from_secs(1);

fn client(url: &str) -> Postgres {
    Postgres::builder(url).timeout(SHORT).connections(2).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_confirmed_outlives_servers_that_are_killed() {
    let mut server = Server::start().unwrap();
    let url = server.url();
    let confirmed = Arc::new(AtomicU64::new(0));
    let last = rounds(1_000, 20_000) as u64;
    let count = confirmed.clone();
    let writer = tokio::spawn(async move {
        let (store, mut after) = (client(&url), None);
        for number in 1..=last {
            let next = entry(number, number);
            append(&store, "s", after, &next).await.unwrap();
            after = Some(next.revision);
            count.store(number, Ordering::Relaxed);
        }
    });
    for kills in 1..=rounds(3, 50) as u64 {
        while confirmed.load(Ordering::Relaxed) < kills * last / (rounds(3, 50) as u64 + 1) {
            sleep(Duration::from_millis(1)).await;
        }
        server = tokio::task::spawn_blocking(move || {
            server.restart().unwrap();
            server
        })
        .await
        .unwrap();
    }
    writer.await.unwrap();
    let all = load(&client(&server.url()), "s").await.unwrap();
    assert_eq!(all, (1..=last).map(|number| entry(number, number)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_is_made_up_for_by_sending_again() {
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let store = client(&server.url_at(proxy.addr()));
    let first = entry(1, 1);
    append(&store, "s", None, &first).await.unwrap();
    for (number, cut) in
        (2..).zip([Proxy::cut_replies as fn(&Proxy), Proxy::cut_requests, Proxy::black_hole])
    {
        let (before, next) = (entry(number - 1, number - 1), entry(number, number));
        cut(&proxy);
        let end = timeout(PATIENCE, store.append("s", Some(before.revision), &next)).await;
        let error = end.expect("waiting has an end").unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Uncertain, "{error}");
        proxy.heal();
        append(&store, "s", Some(before.revision), &next).await.unwrap();
    }
    assert_eq!(load(&store, "s").await.unwrap().len(), 4);

    proxy.refuse();
    proxy.reset();
    // The connection may not have noticed yet.
    let refused = async || match store.load("s").await.unwrap_err().kind() {
        StoreErrorKind::Uncertain => None,
        kind => Some(kind),
    };
    let mut kind = None;
    while kind.is_none() {
        kind = refused().await;
    }
    assert_eq!(kind, Some(StoreErrorKind::Unreachable));
    proxy.heal();
    assert_eq!(load(&store, "s").await.unwrap().len(), 4);
}

/// Who gives up waiting leaves no connection behind on which the next one would wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn futures_that_are_dropped_leave_all_or_nothing() {
    let server = Server::start().unwrap();
    let url = server.url();
    let store = Arc::new(Postgres::builder(&url).connections(1).build().unwrap());
    let (mut after, mut number, mut dropped) = (None, 1, 0);
    for round in 0..rounds(300, 20_000) as u64 {
        let next = entry(number, round);
        let patience = Duration::from_micros(round % 50 * 20);
        let end = timeout(patience, store.append("s", after, &next)).await;
        dropped += u64::from(end.is_err());
        let is_there = match end {
            Ok(end) => end.map(|()| true).unwrap(),
            // Half of them are sent again, of the others we look what became of them.
            Err(_) if round % 2 == 0 => {
                append(&store, "s", after, &next).await.map(|()| true).unwrap()
            }
            Err(_) => false,
        };
        if is_there {
            (after, number) = (Some(next.revision), number + 1);
            continue;
        }
        // A dropped write may still be in flight: an entry with another stamp settles it.
        let other = entry(number, u64::MAX - round);
        match append(&store, "s", after, &other).await {
            Ok(()) => after = Some(other.revision),
            Err(error) => {
                assert_eq!(
                    error.kind(),
                    StoreErrorKind::Conflict { head: Some(next.revision) },
                    "{error}"
                );
                after = Some(next.revision);
            }
        }
        number += 1;
    }
    println!("{dropped} dropped");
    assert!(dropped > 0);
    let all = load(&store, "s").await.unwrap();
    assert!(all.iter().map(|entry| entry.revision.number).eq(1..number));
}

/// Appends, and now and then compacts or deletes; how often.
async fn change(writer: u64, url: String, until: Instant) -> u64 {
    let (store, mut round) = (client(&url), 0);
    while Instant::now() < until {
        round += 1;
        let log = load(&store, "s").await.unwrap();
        let numbers: Vec<_> = log.iter().map(|entry| entry.revision.number).collect();
        let first = numbers.first().copied().unwrap_or(1);
        assert!(numbers.iter().copied().eq(first..first + numbers.len() as u64), "{numbers:?}");
        let head = log.last().map(|entry| entry.revision);
        let end = match (head, (writer + round) % 7) {
            (_, 0) => store.delete("s").await.map(drop),
            (Some(Revision { number, stamp }), 1) => {
                store.compact("s", &entry(number, stamp)).await
            }
            _ => {
                let next = entry(head.map_or(1, |head| head.number + 1), writer << 32 | round);
                store.append("s", head, &next).await
            }
        };
        assert!(end.as_ref().err().is_none_or(StoreError::is_conflict), "{end:?}");
    }
    round
}

/// Other processes always see a complete session, and it starts again with its first entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_deletes_and_compacts_meets_who_appends() {
    let server = Server::start().unwrap();
    let until = Instant::now() + Duration::from_millis(rounds(1_000, 60_000) as u64);
    let writers = (0..4).map(|writer| tokio::spawn(change(writer, server.url(), until)));
    let mut changes = 0;
    for writer in writers.collect::<Vec<_>>() {
        changes += writer.await.unwrap();
    }
    println!("{changes} changes");
}
