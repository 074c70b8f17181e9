//! What may have run is not made again: each failure, however the call is named, whatever is known of its tool, on each
//! of the four ways.
use crate::{
    client::{Call, Era, Http, Kind, random},
    guard::{Shop, Way},
    identity::{code, shop},
    upstream::Fault,
};
use serde_json::json;
use std::fs;

/// How a call is named, and how the model names it when it asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    None,
    Weak,
    Strong,
    Key,
}

impl Id {
    const ALL: [Self; 4] = [Self::None, Self::Weak, Self::Strong, Self::Key];

    fn calls(self, order: &str) -> [Call; 2] {
        let metas = match self {
            Self::None => [json!({}), json!({})],
            Self::Weak => {
                [0, 1].map(|n| json!({ "claudecode/toolUseId": format!("functions.pay:{n}") }))
            }
            Self::Strong => {
                let id = |_| json!({ "claudecode/toolUseId": format!("toolu_01{}", random(22)) });
                [0, 1].map(id)
            }
            // A new key would be another call.
            Self::Key => {
                let key = json!({ "idempotencyKey": random(20) });
                [key.clone(), key]
            }
        };
        metas.map(|meta| Call { tool: "pay", order: order.into(), meta, key: None })
    }
}

/// How the payment fails after it was made, as the order begins.
const FAULTS: [&str; 6] = ["hang", "crash", "rpc-503", "is-error-503", "internal", "unreadable"];

/// What an undeclared tool may say while it is polled.
const POLLS: [&str; 3] = ["not-ready", "refused", "limited"];

/// The four ways: over HTTP on either side, or not.
#[derive(Clone, Copy, Debug)]
struct Ways {
    is_listening: bool,
    is_upstream: bool,
}

impl Ways {
    fn check(self) {
        for is_declared in [false, true] {
            for id in Id::ALL {
                let mut bench = self.bench(is_declared, "1s");
                for fault in FAULTS.into_iter().filter(|fault| *fault != "crash") {
                    bench.plays(id, fault, 1);
                }
                self.bench(is_declared, "20s").plays(id, "crash", 1);
                let runs = if is_declared || id == Id::Key { 1 } else { 2 };
                let mut bench = self.bench(is_declared, "20s");
                for poll in POLLS {
                    bench.plays(id, poll, runs);
                }
            }
        }
    }

    fn bench(self, is_declared: bool, timeout: &str) -> Bench {
        let bank = Shop::over_child();
        let ledger = bank.path("ledger");
        // A guard that only passes bytes is a server over HTTP.
        let (bank, upstream) = match self.is_upstream {
            true => {
                let bank = bank.with(["--mode", "off"]);
                let upstream = bank.listen(Way::HttpStdio);
                (Some(bank), Some(upstream))
            }
            false => (None, None),
        };
        let shop = match &upstream {
            Some(upstream) => Shop::at(&upstream.url),
            None => Shop::over_child(),
        };
        let ledger = if self.is_upstream { ledger } else { shop.path("ledger") };
        let mut shop = shop.with(["--timeout", timeout, "--loops", "off"]);
        let way = if self.is_listening { Way::HttpStdio } else { Way::StdioHttp };
        if !self.is_listening && !self.is_upstream {
            shop = shop.with(["--on-server-exit", "stay"]);
        }
        if is_declared {
            let catalog = shop.path("catalog.toml");
            fs::write(&catalog, "[tools.pay]\neffect = \"mutating\"\n").unwrap();
            shop = shop.with(["--catalog".into(), catalog]);
        }
        let client = shop.open(way, Kind::Keyless, Era::Legacy);
        Bench {
            way: format!("{self:?}, declared: {is_declared}"),
            client,
            ledger,
            _parts: (shop, bank, upstream),
        }
    }
}

struct Bench {
    way: String,
    client: crate::guard::Client,
    ledger: std::path::PathBuf,
    _parts: (Shop, Option<Shop>, Option<crate::guard::Listening>),
}

impl Bench {
    /// Makes a payment that fails so, and an equal one as a model does that asks again.
    fn plays(&mut self, id: Id, fault: &str, runs: usize) {
        let order = format!("{fault}:{id:?}:hang");
        let order = if fault == "hang" { order } else { order.replace(":hang", "") };
        let what = format!("{}, {id:?}, {fault}", self.way);
        let [first, second] = id.calls(&order);
        let said = self.client.call(&first).pop().unwrap().text();
        let (warns, notes) =
            (said.to_lowercase().contains("may have run"), said.contains("[CHECK FIRST]"));
        if runs == 1 {
            // To an answer that is no JSON nothing can be added.
            assert!(warns || fault == "unreadable", "{what}: {said}");
        } else {
            assert!(notes && !warns, "{what}: {said}");
        }
        let again = self.client.call(&second).pop().unwrap().text();
        if runs == 1 {
            for words in ["may have run", "do not repeat it"] {
                assert!(again.contains(words) || again.contains("did not run"), "{what}: {again}");
            }
        }
        for said in [said, again] {
            let lifts = ["tool-guard ", "settle", "another id", "idempotencyKey", "--"];
            assert!(!lifts.iter().any(|way| said.contains(way)), "{what}: {said}");
        }
        let ledger = fs::read_to_string(&self.ledger).unwrap();
        let paid = ledger.lines().filter(|line| *line == order).count();
        assert_eq!(paid, runs, "{what}");
    }
}

#[test]
fn a_command_on_standard_input_and_output() {
    Ways { is_listening: false, is_upstream: false }.check();
}

#[test]
fn a_server_over_http_for_a_client_on_standard_input_and_output() {
    Ways { is_listening: false, is_upstream: true }.check();
}

#[test]
fn a_command_for_clients_over_http() {
    Ways { is_listening: true, is_upstream: false }.check();
}

#[test]
fn a_server_over_http_for_clients_over_http() {
    Ways { is_listening: true, is_upstream: true }.check();
}
/// The caller's equal calls are refused by the next guard, too, also if the caller has a credential.
#[test]
fn an_equal_call_is_refused_after_a_restart() {
    let (upstream, shop) = shop();
    let mut guard = shop.listen(Way::HttpHttp);
    for kind in [Kind::ClaudeCode, Kind::Codex, Kind::Keyless] {
        for credential in [None, Some("Bearer mine")] {
            let open = |url: &str| {
                let client = Http::open(url, kind, Era::Legacy);
                credential.iter().fold(client, |it, value| it.with("authorization", value))
            };
            let order = format!("{kind:?} {credential:?}");
            upstream.play(Fault::Status(503));
            let first = open(&guard.url).once(&Call::new(kind, "pay", &order));
            assert!(first.is_in_band_failure(), "{order}: {first:?}");
            guard.kill();
            guard = shop.listen(Way::HttpHttp);
            let again = open(&guard.url).once(&Call::new(kind, "pay", &order));
            assert_eq!(code(&again), "outcome_unknown", "{order}: {again:?}");
            assert_eq!(upstream.executed(&order), 1, "{order}");
        }
    }
}

/// The catalog is written after such a call: that one counts, however it was recorded, and so does what a person says of it.
#[test]
fn a_call_from_before_its_identity_was_declared_counts_as_it_is_settled() {
    for kind in [Kind::ClaudeCode, Kind::Keyless] {
        for credential in [None, Some("Bearer mine")] {
            let (upstream, shop) = shop();
            let open = |url: &str| {
                let client = Http::open(url, kind, Era::Legacy);
                credential.iter().fold(client, |it, value| it.with("authorization", value))
            };
            let about = format!("{kind:?} {credential:?}");
            let mut guard = shop.listen(Way::HttpHttp);
            upstream.play(Fault::Status(503));
            open(&guard.url).once(&Call::new(kind, "pay", "42"));
            guard.kill();
            let catalog = shop.path("tools.toml");
            let keys = "tools.pay.keys = { identity = ['/order'], volatile = ['/memo'] }";
            fs::write(&catalog, keys).unwrap();
            let shop = shop.with(["--catalog".as_ref(), catalog.as_os_str()]);
            let guard = shop.listen(Way::HttpHttp);
            let again = || open(&guard.url).once(&Call::new(kind, "pay", "42"));
            assert_eq!(code(&again()), "outcome_unknown", "{about}");
            let (_, listed) = shop.records(&["list", "--unknown"]);
            let id = listed.split_whitespace().next().unwrap();
            assert_eq!(shop.records(&["settle", id, "done"]).0, 0, "{about}: {listed}");
            for _ in 0..2 {
                assert_eq!(code(&again()), "answer_not_kept", "{about}");
            }
            assert_eq!(upstream.executed("42"), 1, "{about}");
        }
    }
}
