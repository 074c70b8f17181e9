//! Whatever comes from both sides: nothing panics, no tool runs twice, every call is answered.
use super::*;
use proptest::{prelude::*, sample::Index};
use serde_json::Value;
use std::collections::HashMap;

#[derive(Clone, Debug)]
enum Event {
    Call {
        id: u8,
        read: bool,
        token: bool,
        key: Option<u8>,
    },
    Answer {
        to: Index,
        how: u8,
        batch: bool,
    },
    Progress {
        to: Index,
        progress: u8,
    },
    Cancel {
        id: u8,
    },
    /// A line of either side, with some bytes replaced.
    Garbled {
        of: Index,
        bytes: Vec<(Index, u8)>,
        from_client: bool,
    },
    Pass {
        ms: u64,
    },
    Gone,
}

fn event() -> impl Strategy<Value = Event> {
    let garbled =
        (any::<Index>(), prop::collection::vec(any::<(Index, u8)>(), 0..4), any::<bool>());
    prop_oneof![
        6 => (0u8..6, any::<bool>(), any::<bool>(), prop::option::of(0u8..2))
            .prop_map(|(id, read, token, key)| Event::Call { id, read, token, key }),
        6 => (any::<Index>(), 0u8..6, any::<bool>())
            .prop_map(|(to, how, batch)| Event::Answer { to, how, batch }),
        2 => (any::<Index>(), 0u8..9).prop_map(|(to, progress)| Event::Progress { to, progress }),
        2 => (0u8..6).prop_map(|id| Event::Cancel { id }),
        2 => garbled.prop_map(|(of, bytes, from_client)| Event::Garbled { of, bytes, from_client }),
        3 => prop_oneof![0u64..50, 100u64..5000, Just(51_000u64)].prop_map(|ms| Event::Pass { ms }),
        1 => Just(Event::Gone),
    ]
}

/// What each side has said and may still be passed on.
#[derive(Default)]
struct World {
    said: u32,
    /// The client's lines that the server has not got.
    unsent: HashMap<Vec<u8>, u32>,
    client_lines: Vec<Vec<u8>>,
    server_lines: Vec<Vec<u8>>,
    /// The ids of the calls that reached the server.
    asked: Vec<String>,
    /// Garbled lines make any claim about answers moot.
    garbled: bool,
}

impl World {
    fn client(&mut self, bench: &mut Bench, line: Vec<u8>) {
        *self.unsent.entry(line.clone()).or_default() += 1;
        bench.client(&line);
        self.client_lines.push(line);
    }

    fn server(&mut self, bench: &mut Bench, line: Vec<u8>) {
        bench.server(&line);
        self.server_lines.push(line);
    }

    fn take_to_server(&mut self, bench: &mut Bench) {
        for line in bench.proxy.to_server.written().split_inclusive(|byte| *byte == b'\n') {
            if let Some(count) = self.unsent.get_mut(line).filter(|count| **count > 0) {
                *count -= 1;
                if let Line::One(message) = jsonrpc::read(line)
                    && message.is_tool_call()
                {
                    self.asked.push(message.id.unwrap().get().to_owned());
                }
                continue;
            }
            if self.is_renamed(line) {
                continue;
            }
            // What the client did not say is a retry of what only reads, or a cancellation.
            let value: Value = serde_json::from_slice(line).expect("ours");
            if value["method"] == "tools/call" {
                assert!(value["id"].as_str().unwrap().starts_with(PREFIX), "{value}");
                assert!(value["params"]["name"] != "pay" || self.reuses(&value), "{value}");
                self.asked.push(value["id"].to_string());
            } else {
                assert_eq!(value["method"], "notifications/cancelled");
            }
        }
    }

    /// Any other request whose id may still be answered goes out under an id of ours, once.
    fn is_renamed(&mut self, line: &[u8]) -> bool {
        if matches!(jsonrpc::read(line), Line::One(message) if message.is_tool_call()) {
            return false;
        }
        let ours = format!("\"{PREFIX}");
        let Some(from) = memchr::memmem::find(line, ours.as_bytes()) else { return false };
        let end = from + 1 + memchr::memchr(b'"', &line[from + 1..]).unwrap() + 1;
        let (before, after) = (&line[..from], &line[end..]);
        let is_own = |own: &[u8]| {
            own.len() > before.len() + after.len()
                && own.starts_with(before)
                && own.ends_with(after)
        };
        let own = self.unsent.iter_mut().find(|(own, count)| **count > 0 && is_own(own));
        own.map(|(_, count)| *count -= 1).is_some()
    }

    /// A call whose id may still be answered from before goes out under an id of ours, once.
    fn reuses(&mut self, sent: &Value) -> bool {
        let same = |line: &Vec<u8>| {
            serde_json::from_slice::<Value>(line)
                .is_ok_and(|own| own["params"]["arguments"] == sent["params"]["arguments"])
        };
        let Some(own) = self.unsent.iter().find(|(line, count)| **count > 0 && same(line)) else {
            return false;
        };
        let own = own.0.clone();
        self.unsent.insert(own, 0);
        true
    }

    fn take_to_client(&mut self, bench: &mut Bench) -> Vec<Value> {
        let mut values = Vec::new();
        for line in bench.proxy.to_client.written().split(|byte| *byte == b'\n') {
            let Ok(value) = serde_json::from_slice::<Value>(line) else { continue };
            let ours = |value: &Value| value.as_str().is_some_and(|text| text.starts_with(PREFIX));
            // What the server garbled is no message to a client, and passes as it is.
            let says = ["method", "result", "error"].iter().any(|it| value.get(it).is_some());
            let is_message = value["jsonrpc"] == "2.0" && says;
            assert!(!is_message || !ours(&value["id"]), "{value}");
            // Of a method that it garbled, the server may say what it likes.
            let progress = value["method"] == "notifications/progress";
            assert!(!progress || !ours(&value["params"]["progressToken"]), "{value}");
            values.push(value);
        }
        values
    }
}

async fn run(events: Vec<Event>) {
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    let mut world = World::default();
    // Uncancelled calls by id: how many were made and answered.
    let mut open: HashMap<u8, bool> = HashMap::new();
    for event in events {
        match event {
            Event::Call { id, read, token, key } => {
                world.said += 1;
                let mut meta = serde_json::Map::new();
                if token {
                    meta.insert("progressToken".into(), id.into());
                }
                if let Some(key) = key {
                    meta.insert("idempotencyKey".into(), key.to_string().into());
                }
                let line = serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                    "name": if read { "read" } else { "pay" },
                    "arguments": { "n": world.said }, "_meta": meta,
                } });
                open.insert(id, false);
                world.client(&mut bench, format!("{line}\n").into_bytes());
            }
            Event::Answer { to, how, batch } => {
                if world.asked.is_empty() {
                    continue;
                }
                let id = to.get(&world.asked);
                let end = match how {
                    0 => {
                        r#""result":{"isError":true,"content":[{"type":"text","text":"connect ECONNREFUSED"}]}"#
                    }
                    1 => {
                        r#""result":{"isError":true,"content":[{"type":"text","text":"Missing required parameter: x"}]}"#
                    }
                    2 => r#""error":{"code":-32603,"message":"internal"}"#,
                    3 => r#""error":"odd""#,
                    4 => r#""result":[true,7]"#,
                    _ => r#""result":{"content":[]}"#,
                };
                let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{end}}}");
                let line = if batch { format!("[{answer}]\n") } else { format!("{answer}\n") };
                world.server(&mut bench, line.into_bytes());
            }
            Event::Progress { to, progress } => {
                if world.asked.is_empty() {
                    continue;
                }
                let token = to.get(&world.asked);
                let line = format!(
                    "{{\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{progress}}}}}\n"
                );
                world.server(&mut bench, line.into_bytes());
            }
            Event::Cancel { id } => {
                open.remove(&id);
                let line = format!(
                    "{{\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
                );
                world.client(&mut bench, line.into_bytes());
            }
            Event::Garbled { of, bytes, from_client } => {
                world.garbled = true;
                let lines = if from_client { &world.client_lines } else { &world.server_lines };
                if lines.is_empty() {
                    continue;
                }
                let mut line = of.get(lines).clone();
                let last = line.len() - 1;
                for (at, byte) in bytes.iter().filter(|(_, byte)| *byte != b'\n') {
                    line[at.index(last)] = *byte;
                }
                if from_client {
                    world.client(&mut bench, line);
                } else {
                    world.server(&mut bench, line);
                }
            }
            Event::Pass { ms } => tokio::time::advance(Duration::from_millis(ms)).await,
            Event::Gone => {
                bench.proxy.on_server_ended(None);
                world.unsent.clear();
            }
        }
        bench.settle().await;
        world.take_to_server(&mut bench);
        for value in world.take_to_client(&mut bench) {
            let id = value["id"].as_u64().and_then(|id| u8::try_from(id).ok());
            if let Some(answered) = id.and_then(|id| open.get_mut(&id)) {
                *answered = true;
            }
        }
    }
    for _ in 0..20 {
        tokio::time::advance(Duration::from_secs(60)).await;
        bench.settle().await;
        world.take_to_server(&mut bench);
        for value in world.take_to_client(&mut bench) {
            let id = value["id"].as_u64().and_then(|id| u8::try_from(id).ok());
            if let Some(answered) = id.and_then(|id| open.get_mut(&id)) {
                *answered = true;
            }
        }
    }
    assert!(bench.proxy.calls.is_empty(), "every call has ended");
    if !world.garbled {
        assert!(open.values().all(|answered| *answered), "every call is answered: {open:?}");
    }
}

proptest! {
    #[test]
    fn whatever_comes(events in prop::collection::vec(event(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(events));
    }

    #[test]
    fn every_byte_passes_where_calls_are_only_watched(
        lines in prop::collection::vec((any::<bool>(), prop_oneof![
            any::<Vec<u8>>(),
            (0u8..4).prop_map(|id| call(&id.to_string(), "pay").into_bytes()),
            (0u8..4).prop_map(|id| done(&id.to_string()).into_bytes()),
            (0u8..4).prop_map(|id| format!("{{\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n").into_bytes()),
        ]), 0..30),
        shadow in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut bench = Bench::new(if shadow { Mode::Shadow } else { Mode::Observe });
            let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
            for (from_client, mut line) in lines {
                line.retain(|byte| *byte != b'\n');
                line.push(b'\n');
                if from_client {
                    bench.client(&line);
                    to_server.extend(line);
                } else {
                    bench.server(&line);
                    to_client.extend(line);
                }
                bench.settle().await;
                tokio::time::advance(Duration::from_secs(20)).await;
            }
            assert_eq!(bench.proxy.to_server.written(), to_server);
            assert_eq!(bench.proxy.to_client.written(), to_client);
        });
    }
}
