//! Equal calls of several clients in any order, with ends, cuts, renewed credentials and killed guards: no second
//! execution if one is promised, no lost answer, nothing for another credential.
use super::*;
use proptest::{prelude::*, sample::Index};
use std::{
    collections::{HashMap, HashSet},
    path::Path,
};
use tokio::{
    runtime,
    task::{AbortHandle, spawn_blocking},
};

/// How a payment is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    /// By a key that all its repeats have.
    Key,
    /// By its order, under another id of the model's each time.
    Order,
    /// By its order, and to the server by a key of its own, under which that makes it once.
    Keyed,
    /// By nothing.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Paid,
    Unknown,
    NotRun,
}

#[derive(Clone, Debug)]
enum Event {
    Pay {
        client: usize,
        name: Name,
        order: u8,
    },
    End {
        which: Index,
        how: How,
    },
    Cut {
        which: Index,
    },
    Pass {
        ms: u64,
    },
    /// The client has another credential.
    Renew {
        client: usize,
    },
    /// The server accepts the client's credential in its session.
    Accept {
        client: usize,
    },
    Kill,
}

fn event() -> impl Strategy<Value = Event> {
    let client = 0..CLIENTS.len();
    let name =
        prop_oneof![Just(Name::Key), Just(Name::Order), Just(Name::Keyed), Just(Name::Nothing)];
    let how = prop_oneof![2 => Just(How::Paid), 1 => Just(How::Unknown), 1 => Just(How::NotRun)];
    prop_oneof![
        8 => (client.clone(), name, 0..5u8)
            .prop_map(|(client, name, order)| Event::Pay { client, name, order }),
        4 => (any::<Index>(), how).prop_map(|(which, how)| Event::End { which, how }),
        1 => any::<Index>().prop_map(|which| Event::Cut { which }),
        1 => (0..6_000u64).prop_map(|ms| Event::Pass { ms }),
        1 => client.clone().prop_map(|client| Event::Renew { client }),
        2 => client.prop_map(|client| Event::Accept { client }),
        1 => Just(Event::Kill),
    ]
}

/// Their sessions and first credentials: two of one credential, two without, two in one session.
const CLIENTS: [(&str, Option<&str>); 6] = [
    ("s-0", Some("a")),
    ("s-1", Some("a")),
    ("s-2", Some("b")),
    ("s-2", Some("c")),
    ("s-4", None),
    ("s-5", None),
];

/// Who asks: the session, and the credential.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Caller {
    session: &'static str,
    credential: Option<String>,
}

impl Caller {
    fn of(client: usize, renewed: usize) -> Self {
        let (session, credential) = CLIENTS[client];
        let credential =
            credential.map(|it| format!("{it}{}{renewed}", if renewed > 0 { session } else { "" }));
        Self { session, credential }
    }

    fn headers(&self) -> Vec<(&'static str, &str)> {
        let credential = self.credential.as_deref().map(|it| ("authorization", it));
        [("mcp-session-id", self.session)].into_iter().chain(credential).collect()
    }
}

/// A call that its client waits for.
struct Asked {
    caller: Caller,
    name: Name,
    /// Whose answers it may read: those whose credentials the server had accepted in its session.
    friends: HashSet<Caller>,
    request: AbortHandle,
    answer: JoinHandle<(StatusCode, String)>,
}

/// A run at the server.
struct Paid {
    caller: Caller,
    name: Name,
    order: u8,
    /// The server's key.
    key: String,
    post: Heared,
}

#[derive(Default)]
struct World {
    renewed: [usize; CLIENTS.len()],
    accepted: HashSet<Caller>,
    asked: Vec<Asked>,
    running: Vec<Paid>,
    /// The payments that were or may have been made.
    made: Vec<(Name, u8, String)>,
    receipts: Vec<Caller>,
    ids: u32,
}

impl World {
    fn pay(&mut self, bench: &Bench, client: usize, name: Name, order: u8) {
        self.ids += 1;
        let id = self.ids;
        let meta = match name {
            Name::Key => format!(r#""idempotencyKey":"k-{order}""#),
            Name::Order | Name::Keyed => {
                format!(r#""claudecode/toolUseId":"toolu_01A09q90qw90lq9178{id:05}c""#)
            }
            Name::Nothing => String::new(),
        };
        let tool = match name {
            Name::Order => "pay_order",
            Name::Keyed => "pay_keyed",
            Name::Key | Name::Nothing => "pay",
        };
        // A model writes a key of its own each time, or none.
        let has_key = name == Name::Keyed && id.is_multiple_of(2);
        let key = if has_key { format!(r#","key":"{id}""#) } else { String::new() };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"order":{order}{key}}},"_meta":{{{meta}}}}}}}"#
        );
        let caller = Caller::of(client, self.renewed[client]);
        let friends = if self.accepted.contains(&caller) {
            self.accepted.iter().filter(|it| it.session == caller.session).cloned().collect()
        } else {
            HashSet::new()
        };
        let request = bench.send(&caller.headers(), body);
        let (abort, answer) = (request.abort_handle(), tokio::spawn(text(request)));
        self.asked.push(Asked { caller, name, friends, request: abort, answer });
    }

    /// Lets go on what can, and takes what reaches the server.
    async fn settle(&mut self, bench: &mut Bench) {
        for _ in 0..4 {
            for _ in 0..50 {
                yield_now().await;
            }
            if let Some(store) = bench.door.guard.live.stack().records().in_store() {
                let _ = store.record(&tr_core::canonical::Key::from_bytes([0; 32])).await;
            }
        }
        while let Ok(post) = bench.posts.try_recv() {
            let body = post.body();
            if body["method"] != "tools/call" {
                continue;
            }
            let params = &body["params"];
            let name = match (params["name"].as_str(), &params["_meta"]["idempotencyKey"]) {
                (Some("pay_order"), _) => Name::Order,
                (Some("pay_keyed"), _) => Name::Keyed,
                (_, Value::String(_)) => Name::Key,
                _ => Name::Nothing,
            };
            let order = params["arguments"]["order"].as_u64().unwrap() as u8;
            let key = params["arguments"]["key"].to_string();
            let said =
                |name: &str| Some(post.posted.headers.get(name)?.to_str().unwrap().to_owned());
            let session = CLIENTS.iter().find(|it| Some(it.0) == said("mcp-session-id").as_deref());
            let caller = Caller { session: session.unwrap().0, credential: said("authorization") };
            self.running.push(Paid { caller, name, order, key, post });
        }
        self.hear().await;
    }

    /// Checks the answers that have come.
    async fn hear(&mut self) {
        for at in (0..self.asked.len()).rev() {
            if !self.asked[at].answer.is_finished() {
                continue;
            }
            let Asked { caller, name, friends, answer, .. } = self.asked.swap_remove(at);
            let (_, said) = answer.await.unwrap();
            assert!(!said.is_empty(), "no answer");
            let Some((_, receipt)) = said.split_once("receipt-") else { continue };
            let number: usize = receipt.split('-').next().unwrap().parse().unwrap();
            let of = &self.receipts[number];
            let is_same = match &caller.credential {
                Some(_) => caller.credential == of.credential,
                // A key is secret; without one it is the session.
                None => {
                    of.credential.is_none() && (name == Name::Key || of.session == caller.session)
                }
            };
            let is_renewed = friends.contains(of);
            assert!(is_same || is_renewed, "{caller:?} {name:?} reads an answer of {of:?}");
        }
    }

    fn end(&mut self, which: usize, how: How) {
        let Paid { caller, name, order, key, post } = self.running.swap_remove(which);
        if !matches!(how, How::NotRun) {
            self.made.push((name, order, key));
        }
        match how {
            How::Paid => {
                post.answer(&format!("receipt-{}-", self.receipts.len()));
                self.receipts.push(caller);
            }
            How::Unknown => post.fail(Ran::Unknown, Verdict::Permanent),
            How::NotRun => post.fail(Ran::No, Verdict::Permanent),
        }
    }

    /// The guard is killed with all its connections; what runs at the server goes on there.
    fn kill(&mut self) {
        self.asked.clear();
        self.made.extend(self.running.drain(..).map(|paid| (paid.name, paid.order, paid.key)));
    }

    fn check(&self) {
        let running = self.running.iter().map(|paid| (paid.name, paid.order, paid.key.clone()));
        let mut seen = HashMap::new();
        for (name, order, key) in self.made.iter().cloned().chain(running) {
            let before = seen.insert((name, order), key.clone());
            let is_once = before.is_none_or(|before| name == Name::Keyed && before == key);
            assert!(is_once || name == Name::Nothing, "{name:?} {order} is made twice");
        }
    }
}

/// Takes events until the guard is killed.
async fn live(world: &mut World, folder: &Path, events: &mut impl Iterator<Item = Event>) {
    let (catalog, records) = (folder.join("catalog.toml"), folder.join("records.db"));
    let mut bench = Bench::with(&[
        "--catalog",
        catalog.to_str().unwrap(),
        "--records",
        records.to_str().unwrap(),
    ])
    .await;
    for event in events {
        match event {
            Event::Pay { client, name, order } => world.pay(&bench, client, name, order),
            Event::End { which, how } if !world.running.is_empty() => {
                world.end(which.index(world.running.len()), how);
            }
            Event::Cut { which } if !world.asked.is_empty() => {
                let at = which.index(world.asked.len());
                let asked = world.asked.swap_remove(at);
                asked.request.abort();
                asked.answer.abort();
            }
            Event::Pass { ms } => advance(Duration::from_millis(ms)).await,
            Event::Renew { client } => world.renewed[client] += 1,
            Event::Accept { client } => {
                let caller = Caller::of(client, world.renewed[client]);
                if caller.credential.is_some() {
                    bench.accept(&caller.headers());
                    world.accepted.insert(caller);
                }
            }
            Event::Kill => return world.kill(),
            Event::End { .. } | Event::Cut { .. } => {}
        }
        world.settle(&mut bench).await;
        world.check();
    }
    // All that is still asked gets an answer.
    for round in 0.. {
        if world.asked.is_empty() {
            break;
        }
        assert!(round < 1_000, "calls without an answer");
        while !world.running.is_empty() {
            world.end(0, How::Paid);
        }
        advance(Duration::from_millis(300)).await;
        world.settle(&mut bench).await;
        world.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whoever_asks_when(events in prop::collection::vec(event(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("catalog.toml"),
            "[tools.pay]\neffect = \"mutating\"\n[tools.pay_order]\neffect = \"mutating\"\nkeys = { identity = [\"/order\"] }\n[tools.pay_keyed]\nkeys = { identity = [\"/order\"], server_key = \"/key\" }\n",
        )
        .unwrap();
        let (mut world, mut events) = (World::default(), events.into_iter().peekable());
        while events.peek().is_some() {
            // Its end takes all of the guard's tasks with it.
            let runtime = runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            runtime.block_on(async {
                // While this runs, time stands unless a test says otherwise: the store answers from a thread of its own.
                let (done, wait) = std::sync::mpsc::channel::<()>();
                let _stands = spawn_blocking(move || wait.recv());
                live(&mut world, folder.path(), &mut events).await;
                drop(done);
            });
        }
    }
}
