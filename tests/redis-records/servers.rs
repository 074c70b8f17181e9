//! What is said of servers that cannot keep the promise, and of what lies under a key.
use crate::{
    process::{Outcome, PAUSE, Tool, call_plainly, claim, key},
    world::patient,
};
use std::{net::SocketAddr, num::NonZeroU8, thread, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::State,
    redis::{Durability, Redis},
    store::{Claimed, End, Query, RecordStore as _, Selector, StateFilter, StoreErrorKind},
};
use tr_testkit::redis::{Persistence, Server};

const TEN_MB: u64 = 10_000_000;

#[tokio::test]
async fn a_server_that_may_forget_a_call_in_flight_is_refused() {
    for policy in ["allkeys-lru", "volatile-lru", "volatile-ttl"] {
        let server = Server::options().max_memory(TEN_MB, policy).start().unwrap();
        let error = patient(server.url()).connect().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused);
        let text = error.to_string();
        for part in [policy, "`maxmemory-policy`", "set it to `noeviction`"] {
            assert!(text.contains(part), "{text}");
        }
        let accepted = patient(server.url()).evicting_at_my_own_risk().connect().await;
        let warnings = accepted.unwrap().check().await.unwrap().join("\n");
        assert!(warnings.contains(policy), "{warnings}");
    }
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    let primary = Server::start().unwrap();
    let replica =
        Server::options().replica_of(&primary).max_memory(TEN_MB, "allkeys-lfu").start().unwrap();
    let wait = Durability::wait_for(NonZeroU8::MIN);
    let error = patient(replica.url()).durability(wait).connect().await.unwrap_err();
    let text = error.to_string();
    for part in ["it is a replica", "allkeys-lfu", "0 replicas are connected"] {
        assert!(text.contains(part), "{text}");
    }

    let error = Redis::builder("redis://:secret@[bad").prefix("a{b}").build().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("invalid address") && text.contains("invalid prefix \"a{b}\""), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused() {
    let server = Server::options().set("cluster-enabled", ["yes"]).start().unwrap();
    let error = patient(server.url()).connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(error.to_string().contains("it is a cluster node"), "{error}");
}

#[tokio::test]
async fn a_server_that_forgets_on_restart_is_warned_of() {
    let server = Server::start().unwrap();
    let warnings = patient(server.url()).connect().await.unwrap().check().await.unwrap();
    assert!(matches!(&warnings[..], [one] if one.contains("set `appendonly yes`")), "{warnings:?}");
    let accepted = patient(server.url()).forgetting_on_restart().build().unwrap();
    assert!(accepted.check().await.unwrap().is_empty());
    let server = Server::options().persistence(Persistence::Always).start().unwrap();
    let store = patient(server.url()).connect().await.unwrap();
    assert!(store.check().await.unwrap().is_empty());
    let _replica = Server::options().replica_of(&server).start().unwrap();
    let warnings = store.check().await.unwrap();
    assert!(
        matches!(&warnings[..], [one] if one.contains("writes do not wait for its replicas")),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_wrong_password_and_no_server_are_told_apart() {
    let mut server = Server::options().password("sesame42").start().unwrap();
    let address = server.addr();
    for url in [format!("redis://{address}"), format!("redis://:guess@{address}")] {
        let error = patient(url).connect().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("check the user and password"), "{error}");
        assert!(!error.to_string().contains("guess"), "{error}");
    }
    let store = patient(server.url()).connect().await.unwrap();
    assert!(!format!("{store:?}").contains("sesame42"));
    server.kill();
    let error = Redis::connect(server.url()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
}

/// Answers the first connection with this line, whatever it asks, and passes the next on to the server.
async fn refusing_once(server: SocketAddr, line: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        assert!(client.read(&mut [0; 4096]).await.unwrap() > 0, "it says HELLO");
        client.write_all(line.repeat(3).as_bytes()).await.unwrap();
        drop(client);
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(server).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    addr
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_the_server_refuses_is_made_again() {
    use StoreErrorKind::{Refused, Unreachable};
    let server = Server::start().unwrap();
    for (line, kind) in [
        ("-NOAUTH Authentication required.\r\n", Refused),
        ("-WRONGPASS invalid username-password pair or user is disabled.\r\n", Refused),
        ("-LOADING Redis is loading the dataset in memory\r\n", Unreachable),
        ("-ERR max number of clients reached\r\n", Unreachable),
        ("-ERR of another kind\r\n", Refused),
    ] {
        let addr = refusing_once(server.addr(), line).await;
        let store = patient(server.url_at(addr)).build().unwrap();
        let claim = claim(line);
        // Callers that came meanwhile share the refusal.
        let (one, other) = tokio::join!(store.claim(&claim), store.claim(&claim));
        for error in [one.unwrap_err(), other.unwrap_err()] {
            assert_eq!(error.kind(), kind, "{line:?}: {error}");
        }
        assert!(matches!(store.claim(&claim).await.unwrap(), Claimed::Run(_)), "{line:?}");
    }
}

#[tokio::test]
async fn a_password_may_change_while_a_process_lives() {
    let server = Server::start().unwrap();
    let user = |words: &[&str]| {
        server.command(["ACL", "SETUSER", "calls"].iter().chain(words).copied()).unwrap();
        let _ = server.command(["CLIENT", "KILL", "USER", "calls"]);
    };
    user(&["on", ">sesame42", "~*", "&*", "+@all"]);
    let url = format!("redis://calls:sesame42@{}/", server.addr());
    let store = patient(url).forgetting_on_restart().connect().await.unwrap();
    user(&["resetpass", ">another1"]);
    let mut denied = store.claim(&claim("pay")).await.unwrap_err();
    if denied.is_transient() {
        // That request met the connection that was closed.
        denied = store.claim(&claim("pay")).await.unwrap_err();
    }
    assert!(denied.to_string().contains("check the user and password"), "{denied}");
    user(&["resetpass", ">sesame42"]);
    assert!(matches!(store.claim(&claim("pay")).await.unwrap(), Claimed::Run(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_the_rights_that_the_guide_names_can_do_everything() {
    let server = Server::start().unwrap();
    let guide = include_str!("../../docs/redis-records.md");
    let rights = guide.lines().find_map(|line| line.strip_prefix("A user of its own needs `"));
    let rights = rights.and_then(|rights| rights.split('`').next()).unwrap();
    let user = ["ACL", "SETUSER", "calls", "on", ">sesame42", "~tr:calls:*", "&tr:calls:*"];
    server.command(user.into_iter().chain(rights.split(' '))).unwrap();
    let url = format!("redis://calls:sesame42@{}/", server.addr());
    let store = patient(&url).forgetting_on_restart().connect().await.unwrap();
    assert!(store.check().await.unwrap().is_empty());

    let claimed = claim("pay");
    let Claimed::Run(grant) = store.claim(&claimed).await.unwrap() else { panic!("a new key") };
    let Claimed::Busy { seen, .. } = store.claim(&claim("pay")).await.unwrap() else {
        panic!("it is claimed")
    };
    let watcher = patient(&url).build().unwrap();
    let watched = claimed.key;
    let told = tokio::spawn(async move { watcher.watch(&watched, seen).await });
    assert!(store.renew(&claimed.key, grant.token, 60_000).await.unwrap());
    let unknown = End { state: State::Unknown(None), ttl: 60_000 };
    assert!(store.finalize(&claimed.key, grant.token, &unknown).await.unwrap());
    told.await.unwrap().unwrap();
    let end = End { state: State::Done(b"paid".to_vec()), ttl: 60_000 };
    assert!(store.settle(&claimed.key, Some(grant.token), &end).await.unwrap());
    assert_eq!(store.list(&Query::ALL, 9, false).await.unwrap().records.len(), 1);
    assert_eq!(store.flush(&Query::ALL).await.unwrap(), 1);
    let another = claim("another");
    assert!(matches!(store.claim(&another).await.unwrap(), Claimed::Run(_)));
    assert!(store.release(&another.key, another.owner).await.unwrap());
    assert!(!store.clear(&another.key).await.unwrap());
    let log = server.command(["ACL", "LOG"]).unwrap();
    assert!(!log.to_string().contains("command"), "it was denied something: {log}");
}

#[tokio::test]
async fn what_is_no_record_is_neither_run_over_nor_taken_for_none() {
    let server = Server::start().unwrap();
    let store = patient(server.url()).prefix("app:").build().unwrap();
    let (claim, other) = (claim("pay"), claim("other"));
    let name = format!("app:{{{}}}", claim.key);
    for foreign in [&["HSET", &name, "field", "1"][..], &["SET", &name, "2, of a later version"]] {
        server.command(foreign.iter().copied()).unwrap();
        let error = store.claim(&claim).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
        let error = store.read(&claim.key).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
        assert_eq!(server.command(["EXISTS", &name]).unwrap().int(), Some(1));
        server.command(["DEL", &name]).unwrap();
    }
    // Of this version's layout, with a state that it does not know.
    let torn = format!("1z{}", "0".repeat(200));
    assert!(matches!(store.claim(&other).await.unwrap(), Claimed::Run(_)));
    server.command(["SET", &name, &torn]).unwrap();
    assert_eq!(store.claim(&claim).await.unwrap_err().kind(), StoreErrorKind::Unreadable);
    assert_eq!(server.command(["GET", &name]).unwrap().to_string(), torn);
    let listing = store.list(&Query::ALL, 9, false).await.unwrap();
    assert_eq!(listing.records.len(), 1);
    assert_eq!(listing.unreadable[0].key, claim.key);
    // It shows its session and params all the same.
    server.command(["DEL", &name]).unwrap();
    assert!(matches!(store.claim(&claim).await.unwrap(), Claimed::Run(_)));
    server.command(["SETRANGE", &name, "1", "z"]).unwrap();
    for (session, found) in [("s-1", 1), ("s-2", 0)] {
        let selector = Selector::Equal(session.into(), claim.digest);
        let query = Query { selector, state: StateFilter::Unknown };
        let listing = store.list(&query, 9, true).await.unwrap();
        let tools: Vec<_> = listing.unreadable.iter().map(|it| it.tool.as_deref()).collect();
        assert_eq!(tools, vec![Some(&*claim.tool); found]);
    }

    server.command(["SET", &name, "2, of a later version"]).unwrap();
    assert!(store.clear(&claim.key).await.unwrap());
    assert!(matches!(store.claim(&claim).await.unwrap(), Claimed::Run(_)));
}

#[tokio::test]
async fn a_full_server_keeps_claims_and_records_ends() {
    let server = Server::start().unwrap();
    let store = patient(server.url()).connect().await.unwrap();
    let claimed = claim("pay");
    let Claimed::Run(grant) = store.claim(&claimed).await.unwrap() else { panic!("a new key") };
    server.command(["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let full = store.claim(&claim("another")).await.unwrap_err();
    assert_eq!(full.kind(), StoreErrorKind::Full);
    for said in ["nothing was written: ", "OOM", "'maxmemory'", "raise the server's `maxmemory`"] {
        assert!(full.to_string().contains(said), "{full}");
    }
    assert!(store.read(&key("another")).await.unwrap().is_none());
    let end = End { state: State::Done(b"paid".to_vec()), ttl: 60_000 };
    assert!(store.finalize(&claimed.key, grant.token, &end).await.unwrap());
    assert!(matches!(store.claim(&claim("pay")).await.unwrap(), Claimed::Settled(_)));
}

#[tokio::test]
async fn a_server_that_evicts_forgets_and_epochs_still_grow() {
    let server = Server::options().max_memory(TEN_MB, "allkeys-random").start().unwrap();
    let store = patient(server.url()).evicting_at_my_own_risk().connect().await.unwrap();
    let Claimed::Run(first) = store.claim(&claim("pay")).await.unwrap() else { panic!("new") };
    let filler = "x".repeat(100_000);
    let mut fillers = 0..100_000;
    while store.read(&key("pay")).await.unwrap().is_some() {
        let n = fillers.next().expect("it is forgotten sooner or later");
        server.command(["SET", &format!("filler-{n}"), &filler]).unwrap();
    }
    let second = store.claim(&claim("pay")).await.unwrap();
    let Claimed::Run(second) = second else { panic!("it was not forgotten: {second:?}") };
    assert!(second.token.epoch > first.token.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_loading_is_waited_for() {
    let options = Server::options().persistence(Persistence::Always);
    let mut server = options
        .set("enable-debug-command", ["yes"])
        .set("key-load-delay", ["2000"])
        .set("loading-process-events-interval-bytes", ["1024"])
        .start()
        .unwrap();
    let store = patient(server.url()).connect().await.unwrap();
    let tool = Tool::default();
    assert_eq!(call_plainly(&store, "pay", &tool).await, Outcome::Ran { recorded: true });
    server.command(["DEBUG", "POPULATE", "400", "key", "200"]).unwrap();
    server.command(["BGREWRITEAOF"]).unwrap();
    let rewriting = || {
        let info = server.command(["INFO", "persistence"]).unwrap().to_string();
        !info.contains("aof_rewrite_in_progress:0") || !info.contains("aof_rewrite_scheduled:0")
    };
    while rewriting() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.kill();
    let restarted = thread::spawn(move || {
        server.restart().unwrap();
        server
    });
    let mut loading = 0;
    let replayed = loop {
        match store.claim(&claim("pay")).await {
            Ok(claimed) => break claimed,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                loading += u32::from(error.to_string().contains("loading"));
            }
        }
        tokio::time::sleep(PAUSE).await;
    };
    assert!(matches!(replayed, Claimed::Settled(_)), "{replayed:?}");
    assert!(loading > 0, "it never met a server that was loading");
    drop(restarted.join().unwrap());
}
