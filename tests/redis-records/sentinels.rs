//! Sentinels that name the primary: it dies or is paused, a replica is promoted, and callers
//! follow.
use crate::{
    layered::{Hook, PAY, Process, Told},
    process::{PAUSE, Point, Tool},
    world::TIMEOUT,
};
use std::{
    net::SocketAddr,
    num::NonZeroU8,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tr_idempotency::{
    redis::{Builder, Durability, Redis},
    store::StoreErrorKind,
};
use tr_testkit::{
    redis::{Options, Server, Value},
    rounds,
};

/// For a failover, and another one where a busy machine makes sentinels think so: two seconds until
/// a primary counts as dead, an election, a promotion.
const FAILOVER: Duration = Duration::from_secs(60);

/// They watch a primary, which they call "records", and its replicas. A majority decides after two seconds that it is
/// down.
pub(crate) struct Sentinels(Vec<Server>);

impl Sentinels {
    /// Waits until they know one another and all replicas.
    pub(crate) async fn watch(
        primary: &Server,
        count: usize,
        options: impl Fn() -> Options,
    ) -> Self {
        let port = primary.addr().port().to_string();
        let quorum = (count / 2 + 1).to_string();
        let start = |_| {
            options()
                .sentinel()
                .set("sentinel", ["monitor", "records", "127.0.0.1", &port, &quorum])
                .set("sentinel", ["auth-pass", "records", "sesame42"])
                .set("sentinel", ["down-after-milliseconds", "records", "2000"])
                .set("sentinel", ["failover-timeout", "records", "6000"])
                .start()
                .unwrap()
        };
        let this = Self((0..count).map(start).collect());
        let info = primary.command(["INFO", "replication"]).unwrap().to_string();
        let replicas = info.split("connected_slaves:").nth(1).and_then(|rest| rest.lines().next());
        let others = (count - 1).to_string();
        let begin = Instant::now();
        let knows_all = |one: &Server| {
            let Ok(Value::List(parts)) = one.command(["SENTINEL", "MASTER", "records"]) else {
                return false;
            };
            let parts: Vec<_> = parts.iter().filter_map(Value::text).collect();
            let field = |name| parts.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1]);
            field("num-slaves") == replicas && field("num-other-sentinels") == Some(&*others)
        };
        while !this.0.iter().all(knows_all) {
            assert!(begin.elapsed() < FAILOVER, "the sentinels do not know one another");
            sleep(PAUSE).await;
        }
        this
    }

    /// Their URLs for clients.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    /// The primary by the first of them.
    fn primary(&self) -> Option<SocketAddr> {
        let asked = self.0[0].command(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "records"]).unwrap();
        let Value::List(parts) = asked else { return None };
        let parts: Vec<_> = parts.iter().filter_map(Value::text).collect();
        parts.join(":").parse().ok()
    }
}

struct Group {
    primary: Mutex<Server>,
    replicas: [Server; 2],
    sentinels: Sentinels,
}

impl Group {
    async fn start() -> Self {
        let primary = Server::options().password("sesame42").start().unwrap();
        let replica = || {
            // Each may become the primary, and asks for the same password then.
            let options = Server::options().password("sesame42").replica_of(&primary);
            options.start().unwrap()
        };
        let replicas = [replica(), replica()];
        let heard = primary.command(["WAIT", "2", "20000"]).unwrap();
        assert_eq!(heard.int(), Some(2), "the primary has not heard from its replicas");
        // Once it is a replica itself.
        primary.command(["CONFIG", "SET", "masterauth", "sesame42"]).unwrap();
        let sentinels = Sentinels::watch(&primary, 3, Server::options).await;
        Self { primary: Mutex::new(primary), replicas, sentinels }
    }

    fn builder(&self) -> Builder {
        Redis::builder("redis://:sesame42@records")
            .sentinels(self.sentinels.urls())
            .durability(Durability::wait_for(NonZeroU8::MIN))
            .response_timeout(TIMEOUT)
            .forgetting_on_restart()
    }

    fn process(&self, tool: &Arc<Tool>, at: Option<Hook>) -> Process {
        Process::new(self.builder().build().unwrap(), tool, at)
    }

    /// A replica was promoted, and the other one follows it: until then the old primary, should it
    /// wake, still has that one's word for what it writes.
    async fn failed_over(&self) {
        let (before, begin) = (self.primary.lock().unwrap().addr(), Instant::now());
        loop {
            let primary = self.sentinels.primary();
            let follow = |new: SocketAddr| {
                let port = format!("master_port:{}\r\nmaster_link_status:up", new.port());
                self.replicas.iter().filter(|replica| replica.addr() != new).all(|replica| {
                    let info = replica.command(["INFO", "replication"]).unwrap().to_string();
                    info.contains(&port)
                })
            };
            if primary.is_some_and(|primary| primary != before && follow(primary)) {
                return;
            }
            assert!(begin.elapsed() < FAILOVER, "no replica was promoted");
            sleep(PAUSE).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_primary_dies_and_no_call_runs_twice() {
    let points = [Point::AfterClaim, Point::AfterRun, Point::AfterEnd];
    for &point in &points[..rounds(1, 3) as usize] {
        let (group, tool) = (Arc::new(Group::start().await), Arc::new(Tool::default()));
        let dies = group.clone();
        let at: Hook = Arc::new(move |at| {
            if at == point {
                tokio::task::block_in_place(|| dies.primary.lock().unwrap().kill());
            }
            Box::pin(async {})
        });
        let first = group.process(&tool, Some(at.clone()));
        let (second, third) = (group.process(&tool, None), group.process(&tool, None));
        second.ask_until_served("before", FAILOVER).await;
        let one = first.ask(PAY).await;
        at(Point::AfterEnd).await;
        let two = second.ask(PAY).await;

        // A caller that retries long enough is served by the new primary, which knows what has run.
        third.ask_until_served("back", FAILOVER).await;
        let (before, three) = third.ask_until_answered(PAY, FAILOVER).await;
        println!("{point:?}: {one:?}, {two:?}, {before:?} {three:?}");
        assert_eq!(one, Told::Ran { recorded: point == Point::AfterEnd }, "{point:?}");
        assert_eq!(three, Told::Replayed, "{point:?}: {before:?}");
        assert_eq!(tool.runs().len(), 1, "{point:?}");

        // A process that is new, and the old primary, which is a replica now.
        group.failed_over().await;
        let fourth = group.process(&tool, None);
        assert_eq!(fourth.ask_until_answered(PAY, FAILOVER).await.1, Told::Replayed, "{point:?}");
        tokio::task::block_in_place(|| group.primary.lock().unwrap().restart()).unwrap();
        let name = first.ask_until_served("once more", FAILOVER).await;
        let (_, again) = third.ask_until_answered(&name, FAILOVER).await;
        assert_eq!(again, Told::Replayed, "{point:?}");
    }
}

/// It slept through its own deposition, and takes itself for the primary when it wakes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_still_talks_to_a_deposed_primary_is_not_believed_and_asks_the_sentinels() {
    let (group, tool) = (Group::start().await, Arc::new(Tool::default()));
    let first = group.process(&tool, None);
    first.ask_until_served("before", FAILOVER).await;
    group.primary.lock().unwrap().pause();
    group.failed_over().await;
    group.primary.lock().unwrap().resume();
    let (before, told) = first.ask_until_answered(PAY, FAILOVER).await;
    assert_eq!(told, Told::Ran { recorded: true }, "{before:?}");
    let other = group.process(&tool, None);
    assert_eq!(other.ask_until_answered(PAY, FAILOVER).await.1, Told::Replayed);
    assert_eq!(tool.runs().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_sentinels_is_told() {
    let primary = Server::options().password("sesame42").start().unwrap();
    let sentinels = Sentinels::watch(&primary, 1, Server::options).await;
    let ask = async |address: &str, sentinels: &[String]| {
        Redis::builder(address).sentinels(sentinels).connect().await.unwrap_err()
    };
    let urls = sentinels.urls();
    Redis::builder("redis://:sesame42@records").sentinels(&urls).connect().await.unwrap();

    let error = ask("redis://another", &urls).await;
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("check the sentinels and the name"), "{error}");
    let error = ask("redis://records", &["redis://127.0.0.1:1".into()]).await;
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    for address in ["redis://:guess@records", "redis://records"] {
        let error = ask(address, &urls).await;
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("check the user and password"), "{error}");
    }
    for sentinels in [vec![], vec!["redis://[bad".into()]] {
        let error = ask("redis://records", &sentinels).await;
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("invalid sentinels: "), "{error}");
    }
    let error = ask("unix:/tmp/redis.sock", &urls).await;
    assert!(error.to_string().contains("no name of a primary"), "{error}");
}
