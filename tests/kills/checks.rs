//! Servers and guards are killed between a payment and its answer; what another tool lists settles the payment, or leaves
//! it unknown, and is never taken for what it is not.
use crate::{
    process::{Heard, PATIENCE, Process, kill, now, until},
    seed, shop,
};
use fastrand::Rng;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tr_testkit::rounds;

const CATALOG: &str = r#"[breaker]
mode = "disabled"
[tools.pay]
effect = "mutating"
[tools.pay.check]
tool = "list_payments"
args = { order = "/order", how = "/how" }
found = "/payments"
match = { order = "/order", amount = "/amount" }
not_before = "/at"
absent_after = "1500ms"
[tools.list_payments]
effect = "read_only"
"#;

/// How the server lists its payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// As they are.
    Plain,
    /// Each only after a second at most, and the list is on its way for nearly as long.
    Late,
    /// Each as two halves.
    Instalments,
    /// Without some, and it says that there are more.
    Pages,
    /// Without them, and something in the answer says that it is not whole.
    Lies,
    /// As they are, but the same is paid twice at the same time, and only one of these is killed.
    Twice,
}

impl How {
    const ALL: [Self; 6] =
        [Self::Plain, Self::Late, Self::Instalments, Self::Pages, Self::Lies, Self::Twice];

    fn name(self) -> &'static str {
        match self {
            Self::Plain | Self::Twice => "plain",
            Self::Late => "late",
            Self::Instalments => "instalments",
            Self::Pages => "pages",
            Self::Lies => "lies",
        }
    }

    /// Whether the list shows what became of a payment.
    fn can_tell(self, is_paid: bool) -> bool {
        matches!((self, is_paid), (Self::Plain | Self::Late, _) | (Self::Instalments, false))
    }
}

/// What the client of a payment learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Ran,
    DidNotRun,
    Unknown,
    /// By the server itself.
    Paid,
}

/// Rounds by how the list is, whether it was paid, and what was told, with the longest time that took.
#[derive(Debug, Default)]
struct Tally(BTreeMap<(How, bool, Told), (u64, Duration)>);

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|((how, paid, told), (count, longest))| {
            writeln!(f, "{how:?}, paid {paid}, told {told:?}: {count}, at most {longest:.1?}")
        })
    }
}

struct Round {
    folder: tempfile::TempDir,
    guard: Process,
    starts: u32,
    last_id: u64,
}

impl Round {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.toml"), CATALOG).unwrap();
        let guard = start(folder.path(), 0);
        Self { folder, guard, starts: 0, last_id: 0 }
    }

    /// Another guard on the same records, once this one is killed.
    fn again(&mut self) {
        self.guard.kill();
        self.starts += 1;
        self.guard = start(self.folder.path(), self.starts);
    }

    fn send(&mut self, payment: &Value, key: &str) -> u64 {
        self.last_id += 1;
        let params =
            json!({ "name": "pay", "arguments": payment, "_meta": { "idempotencyKey": key } });
        self.guard.send(&[
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params }),
        ]);
        self.last_id
    }

    fn told(&self, ids: &[u64]) -> Vec<(Told, Value)> {
        let (end, mut told) = (now() + PATIENCE, BTreeMap::new());
        while told.len() < ids.len() {
            let line = match self.guard.hear(end) {
                Heard::Line(line) => line,
                heard => panic!("{heard:?}"),
            };
            if let Some(id) = line["id"].as_u64().filter(|id| ids.contains(id)) {
                told.insert(id, (of(&line), line));
            }
        }
        told.into_values().collect()
    }

    /// How often the payment with this key was made.
    fn paid(&self, key: &str) -> usize {
        let ledger = fs::read_to_string(self.folder.path().join("ledger")).unwrap_or_default();
        ledger.lines().filter(|line| line.split(' ').next() == Some(key)).count()
    }

    /// A server of this guard's that lives.
    fn server(&self) -> u32 {
        let pids = self.folder.path().join(format!("pids{}", self.starts));
        until("the server says its process ID", || {
            fs::read_to_string(&pids).ok()?.strip_suffix('\n')?.lines().last()?.parse().ok()
        })
    }

    /// Plays a payment whose answer is lost, and returns what was told of it.
    fn play(&mut self, how: How, rng: &mut Rng, number: u64) -> (bool, Told, Duration) {
        let (is_paid, is_guard) = (rng.u8(0..4) > 0, rng.u8(0..4) == 0);
        let order = format!("order-{number}");
        let dies = if is_paid { "after" } else { "before" };
        // What is killed waits there.
        let waits = if is_guard { "waits" } else { "dies" };
        let payment = json!({ "order": order, "amount": rng.u32(2..900) * 2, "how": how.name(),
            "late_ms": rng.u32(0..1_000), "seed": rng.u32(..), waits: dies });
        let mut ids = vec![self.send(&payment, &order)];
        if how == How::Twice {
            thread::park_timeout(Duration::from_millis(rng.u64(0..30)));
            ids.push(self.send(&payment, &format!("{order}-twin")));
        }
        let mut begin = now();
        if is_guard {
            let began = self.folder.path().join(format!("{order}.began"));
            until("it waits", || began.exists().then_some(()));
            let server = self.server();
            self.again();
            kill(server);
            begin = now();
            ids = vec![self.send(&payment, &order)];
        }
        let told = self.told(&ids);
        let took = begin.elapsed();
        let paid = self.paid(&order);
        assert!(paid <= 1, "{how:?} {payment}: paid {paid} times, {told:?}");
        if let Some((twin, line)) = told.get(1) {
            let paid = self.paid(&format!("{order}-twin"));
            let is_so = match twin {
                Told::Paid | Told::Ran => paid == 1,
                Told::DidNotRun => paid == 0,
                Told::Unknown => true,
            };
            assert!(is_so && paid <= 1, "the twin of {payment}: paid {paid} times, {line}");
        }
        let (first, line) = &told[0];
        match first {
            // What did not run is free to the next guard, and to a server that has been killed beside its twin.
            Told::Paid | Told::Ran => assert_eq!(paid, 1, "{how:?} {payment}: {line}"),
            Told::DidNotRun => assert_eq!(paid, 0, "{how:?} {payment}: {line}"),
            Told::Unknown => {}
        }
        // Whatever was told, a repeat pays once at most, and what is known stays so.
        let again = self.send(&payment, &order);
        let (again, line) = self.told(&[again]).remove(0);
        let paid = self.paid(&order);
        assert!(paid <= 1, "{how:?} {payment}: paid {paid} times at the repeat, {line}");
        match (first, again) {
            (Told::Ran, Told::Ran) | (Told::Paid, _) | (Told::DidNotRun, Told::Paid) => {}
            (Told::Unknown, Told::Unknown | Told::Ran) => {}
            (Told::Unknown, Told::Paid | Told::DidNotRun) if !is_paid => {}
            // Once more, since the answer of a server that was started again is awaited.
            (Told::DidNotRun, Told::DidNotRun) => {}
            _ => panic!("{how:?} {payment}: told {first:?}, then {line}"),
        }
        (is_paid, *first, took)
    }
}

fn start(folder: &Path, number: u32) -> Process {
    let at = |name: &str| folder.join(name).display().to_string();
    let mut command = Command::new(shop::guard());
    command
        .args([
            "mcp",
            "--log",
            "off",
            "--loops",
            "off",
            "--restart",
            "crash",
            "--records",
            &at("calls.db"),
        ])
        .args(["--config", &at("config.toml"), "--name", &at("")])
        .args(["--", shop::BANK, "shop", &at(""), &at(&format!("pids{number}"))]);
    let mut guard = Process::start(command);
    let client = json!({ "name": "kills", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    guard.send(&[
        json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello }),
    ]);
    match guard.hear(now() + PATIENCE) {
        Heard::Line(line) if line["id"] == "hello" => guard,
        heard => panic!("no answer to initialize: {heard:?}"),
    }
}

fn of(line: &Value) -> Told {
    let text = line["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let ran = line["result"]["_meta"]["tool-reliability/error"]["ran"].as_str();
    match (text, ran) {
        (text, None) if text.starts_with("[SETTLED]") => Told::Ran,
        (text, None) if text.starts_with("paid") => Told::Paid,
        (_, Some("no")) => Told::DidNotRun,
        (text, Some("unknown")) if text.contains("[record ") => Told::Unknown,
        _ => panic!("neither settled nor unknown: {line}"),
    }
}

#[test]
fn a_check_settles_lost_payments_and_none_wrongly() {
    let rounds = rounds(48, 10_000);
    let (next, total, seed) = (AtomicU64::new(0), Mutex::new(Tally::default()), seed());
    let lane = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= rounds {
                return;
            }
            let mut rng = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number));
            // Those that the list can tell of are half of all.
            let how = How::ALL[if rng.bool() { rng.usize(0..2) } else { rng.usize(2..6) }];
            let (is_paid, told, took) = Round::new().play(how, &mut rng, number);
            let mut total = total.lock().unwrap();
            let (count, longest) = total.0.entry((how, is_paid, told)).or_default();
            (*count, *longest) = (*count + 1, took.max(*longest));
        }
    };
    thread::scope(|scope| {
        for _ in 0..24 + rounds / 200 {
            scope.spawn(lane);
        }
    });
    let total = total.into_inner().unwrap();
    println!("seed {seed}\n{total}");
    let (mut told, mut all) = (0, 0);
    for ((how, is_paid, what), (count, _)) in &total.0 {
        if how.can_tell(*is_paid) {
            all += count;
            told += if *what == Told::Unknown { 0 } else { *count };
        }
    }
    assert!(told * 100 >= all * 95, "{told} of {all} were settled");
}
