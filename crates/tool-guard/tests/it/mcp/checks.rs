//! Calls of unknown outcome that another tool of the server tells of.
use super::{
    client::{BIN, Client, ledger, text, until},
    shop::Sells,
};
use serde_json::{Value, json};
use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};
use tokio::time::Instant;
use tr_testkit::rounds;

/// Pays and lists what was paid. The files beside the ledger say what goes wrong: with `dies` it pays and ends, with `fails`
/// it ends and pays nothing, with `lost` it pays and says that it may have; with `hidden` a payment is not listed yet, with `late`
/// not in as many lists as that has bytes; `page` says that there is more, `broken` fails the list. With `parts` it pays in two and ends; with `earlier` it ends and pays
/// nothing, but another has paid the same shortly before.
const SERVER: &str = r#"field() { printf %s "$line" | sed -n "s/.*\"$1\":\(\"[^\"]*\"\|[0-9]*\).*/\1/p"; }
say() { echo '{"jsonrpc":"2.0","id":'$id',"result":{'"$1"'}}'; }
pay() { echo '{"order":'$(field order)',"amount":'${1:-$(field amount)}',"at":'$(($(date +%s%3N) - ${2:-0}))'},' >> "$LEDGER"; }
while read -r line; do
id=$(field id)
case "$line" in
*'"tools/list"'*) say '"tools":[{"name":"pay","inputSchema":{}},{"name":"list_payments","annotations":{"readOnlyHint":true},"inputSchema":{}}]';;
*'"list_payments"'*)
    echo "$line" >> "$LEDGER.asked"
    if [ -e "$LEDGER.broken" ]; then say '"isError":true,"content":[]'; continue; fi
    [ -e "$LEDGER.page" ] && more=',"next_cursor":"2"' || more=
    if [ -s "$LEDGER.late" ]; then truncate -s -1 "$LEDGER.late"; all=
    elif [ -e "$LEDGER.hidden" ]; then all=; else all=$(cat "$LEDGER" 2>/dev/null | tr -d '\n' | sed 's/,$//'); fi
    say '"content":[],"structuredContent":{"payments":['"$all"']'"$more"'}';;
*'"tools/call"'*)
    if [ -e "$LEDGER.fails" ]; then rm "$LEDGER.fails"; exit 7; fi
    if [ -e "$LEDGER.parts" ]; then rm "$LEDGER.parts"; pay 21; pay 21; exit 7; fi
    if [ -e "$LEDGER.earlier" ]; then rm "$LEDGER.earlier"; pay 42 20000; exit 7; fi
    pay
    if rm "$LEDGER.twice" 2>/dev/null; then pay; fi
    if rm "$LEDGER.dies" 2>/dev/null; then exit 7; fi
    if rm "$LEDGER.lost" 2>/dev/null; then say '"isError":true,"content":[{"type":"text","text":"HTTP 503: lost"}]'; else
    say '"content":[{"type":"text","text":"paid"}]'; fi;;
*'"id"'*) say '"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}';;
esac
done"#;

const CHECK: &str = r#"[tools.pay]
effect = "mutating"
[tools.pay.check]
tool = "list_payments"
args = { order = "/order" }
found = "/payments"
match = { order = "/order", amount = "/amount" }
not_before = "/at"
"#;

struct Payments;

impl Sells for Payments {
    const SERVER: &str = SERVER;

    fn greet(client: &mut Client) {
        client.request("i", "initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } }));
        client.answer("i");
        client.list_tools();
    }
}

type Shop = super::shop::Shop<Payments>;

impl Shop {
    fn new(more: &str, options: &[&str]) -> Self {
        Self::open(&[CHECK, more].concat(), &[&["--restart", "crash"], options].concat())
    }

    fn send(&mut self, id: u32, meta: Value) {
        let arguments = json!({ "order": "A1", "amount": 42 });
        let params = json!({ "name": "pay", "arguments": arguments, "_meta": meta });
        self.client.request(id, "tools/call", params);
    }

    fn pay(&mut self, id: u32, meta: Value) -> String {
        self.send(id, meta);
        text(&self.client.answer(id))
    }

    fn paid(&self) -> usize {
        fs::read_to_string(&self.ledger).map_or(0, |paid| paid.lines().count())
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.ledger.with_extension("asked")).unwrap_or_default()
    }
}

/// A new id of the model's.
fn by_model(id: u32) -> Value {
    json!({ "claudecode/toolUseId": format!("toolu_01A09q90qw90lq9178{id:05}c") })
}

#[test]
fn a_caller_that_waits_is_told_that_its_call_ran_and_so_is_each_repeat() {
    for (fault, records, meta) in [
        ("dies", "memory", json!({ "idempotencyKey": "order-42" })),
        ("dies", "memory", json!({})),
        ("lost", "memory", by_model(1)),
        ("lost", "durable", by_model(1)),
        ("dies", "durable", json!({ "idempotencyKey": "order-42" })),
        ("dies", "durable", json!({})),
    ] {
        let options: &[&str] = if records == "memory" { &["--records", "memory"] } else { &[] };
        let mut shop = Shop::new("", options);
        shop.set(fault);
        let told = shop.pay(1, meta.clone());
        assert!(
            told.contains("[SETTLED]") && told.contains(r#""amount":42"#),
            "{fault} {meta} {told}"
        );
        assert!(shop.asked().contains(r#""arguments":{"order":"A1"}"#), "{}", shop.asked());
        if meta.get("idempotencyKey").is_some() {
            assert!(shop.pay(2, meta).contains("[SETTLED]"));
            assert_eq!(shop.paid(), 1);
        }
    }
}

#[test]
fn what_is_listed_only_later_answers_the_equal_call_after() {
    let mut shop = Shop::new("", &["--records", "memory"]);
    shop.set("hidden");
    shop.set("dies");
    assert!(shop.pay(1, json!({})).contains("may have run"));
    shop.unset("hidden");
    shop.client.log_until(|log| log.contains("check_settled"));
    let told = shop.pay(2, json!({}));
    assert!(told.contains("[SETTLED]") && told.contains("[LATE ANSWER]"), "{told}");
    assert_eq!(shop.paid(), 1);
}

#[test]
fn after_the_guard_was_killed_the_next_one_asks_for_whoever_repeats_the_call() {
    for (first, second) in [
        (json!({ "idempotencyKey": "order-42" }), json!({ "idempotencyKey": "order-42" })),
        (by_model(1), by_model(1)),
        (by_model(1), by_model(2)),
    ] {
        let mut shop = Shop::new("", &[]);
        // Nothing shows it before the guard dies.
        shop.set("hidden");
        shop.set("dies");
        shop.send(1, first);
        until("the payment", || (shop.paid() == 1).then_some(()));
        shop.client.kill();
        shop.again();
        let told = shop.pay(2, second.clone());
        assert!(told.contains("[SETTLED]"), "{second} {told}");
        assert_eq!(shop.paid(), 1);
    }
}

#[test]
fn what_is_in_doubt_stays_unknown_and_nothing_runs_again() {
    for doubt in ["page", "broken", "twice"] {
        let mut shop = Shop::new("", &[]);
        shop.set(doubt);
        shop.set("dies");
        let told = shop.pay(1, json!({ "idempotencyKey": "k" }));
        assert!(told.contains("may have run") && told.contains("[record"), "{doubt} {told}");
        let paid = shop.paid();
        let told = shop.pay(2, json!({ "idempotencyKey": "k" }));
        assert!(told.contains("[record"), "{doubt} {told}");
        assert_eq!(shop.paid(), paid);
    }
}

/// The effect of one payment does not stand for another that was made at the same time.
#[test]
fn an_effect_is_not_taken_for_that_of_an_equal_call() {
    let mut shop = Shop::new("", &[]);
    shop.set("fails");
    shop.set("hidden");
    shop.send(1, json!({ "idempotencyKey": "one" }));
    shop.client.log_until(|log| log.contains("server_exited"));
    shop.unset("hidden");
    // On a busy machine the first may be answered before.
    let mut first = None;
    let second = until("the second payment", || {
        shop.send(2, json!({ "idempotencyKey": "two" }));
        let told = loop {
            let answer = shop.client.receive();
            match answer["id"].as_u64() {
                Some(1) => first = Some(text(&answer)),
                Some(2) => break text(&answer),
                _ => {}
            }
        };
        (!told.contains("started again")).then_some(told)
    });
    assert_eq!(second, "paid");
    let told = first.unwrap_or_else(|| text(&shop.client.answer(1)));
    assert!(told.contains("may have run"), "{told}");
    assert_eq!(shop.paid(), 1);
}

/// A weak id, which may name another call later, keeps nothing that has ended; another's record keeps it all the same.
#[test]
fn what_a_weak_id_finds_out_lets_nothing_run_twice() {
    let weak = |id: u32| json!({ "claudecode/toolUseId": format!("functions.pay:{id}") });
    for (first, second, options) in [
        (weak(0), weak(0), &["--records", "memory"][..]),
        (weak(0), weak(0), &[]),
        (weak(0), weak(1), &[]),
        (by_model(1), weak(0), &[]),
        (by_model(1), weak(0), &["--records", "memory"]),
    ] {
        let mut shop = Shop::new("", options);
        // What shows it is found only by the next call.
        shop.set("page");
        shop.set("dies");
        assert!(shop.pay(1, first.clone()).contains("may have run"));
        shop.unset("page");
        let told = shop.pay(2, second.clone());
        assert!(told.contains("[SETTLED]"), "{first} {second} {told}");
        if first != second && first != weak(0) {
            assert!(shop.pay(3, first.clone()).contains("[SETTLED]"), "{first} {second}");
        }
        assert_eq!(shop.paid(), 1, "{first} {second}");
    }
}

#[test]
fn absence_lets_it_run_again_only_where_that_is_declared() {
    for (declared, again) in [("absent_after = \"1s\"\n", true), ("", false)] {
        let mut shop = Shop::new(declared, &[]);
        shop.set("fails");
        let told = shop.pay(1, json!({ "idempotencyKey": "k" }));
        assert_eq!(told.contains("did not run"), again, "{told}");
        assert_eq!(told.contains("may have run"), !again, "{told}");
        let told = shop.pay(2, json!({ "idempotencyKey": "k" }));
        assert_eq!((told == "paid", shop.paid()), (again, usize::from(again)), "{told}");
    }
}

#[test]
fn a_tool_that_may_change_something_is_not_asked() {
    let more = "[tools.list_payments]\neffect = \"mutating\"\n";
    let ledger = ledger();
    let catalog = ledger.with_extension("toml");
    fs::write(&catalog, [CHECK, more].concat()).unwrap();
    let mut refused = Command::new(BIN);
    refused.args(["mcp", "--catalog", catalog.to_str().unwrap(), "--", "true"]);
    let said = String::from_utf8(refused.output().unwrap().stderr).unwrap();
    assert!(said.contains("/check/tool") && said.contains("read_only"), "{said}");
}

/// What happens to one call, and what the guard may say of it.
#[derive(Debug)]
struct Case {
    faults: &'static [&'static str],
    /// The most lists without its payment.
    late: usize,
    absent_after: Option<&'static str>,
    /// What must be found out within five seconds; nothing must ever be, if there is none.
    found: Option<&'static str>,
    /// The payments in the ledger, after a repeat under the same key.
    paid: usize,
}

const SETTLED: Option<&str> = Some("[SETTLED]");
const ABSENT: Option<&str> = Some("did not run");

const CASES: [Case; 9] = [
    Case { faults: &["dies"], late: 0, absent_after: None, found: SETTLED, paid: 1 },
    Case { faults: &["dies"], late: 0, absent_after: Some("1s"), found: SETTLED, paid: 1 },
    Case { faults: &["dies"], late: 3, absent_after: None, found: SETTLED, paid: 1 },
    Case { faults: &["fails"], late: 0, absent_after: Some("1s"), found: ABSENT, paid: 1 },
    Case { faults: &["fails"], late: 0, absent_after: None, found: None, paid: 0 },
    Case { faults: &["parts"], late: 0, absent_after: Some("1s"), found: None, paid: 2 },
    Case { faults: &["dies", "twice"], late: 0, absent_after: None, found: None, paid: 2 },
    Case { faults: &["dies", "page"], late: 0, absent_after: Some("1s"), found: None, paid: 1 },
    Case { faults: &["earlier"], late: 0, absent_after: Some("1s"), found: None, paid: 1 },
];

impl Case {
    /// Whether it was found out, if it can be.
    fn play(&self, late: usize) -> Option<bool> {
        let absent = self.absent_after.map(|after| format!("absent_after = \"{after}\"\n"));
        let meta = json!({ "idempotencyKey": "k" });
        let mut shop = Shop::new(&absent.unwrap_or_default(), &[]);
        self.faults.iter().for_each(|fault| shop.set(fault));
        fs::write(shop.ledger.with_extension("late"), "-".repeat(late)).unwrap();
        let begun = Instant::now();
        let (mut id, mut told) = (1, shop.pay(1, meta.clone()));
        let is_open = |told: &str| told.contains("may have run") && !told.contains("[SETTLED]");
        while self.found.is_some() && is_open(&told) && begun.elapsed() < Duration::from_secs(5) {
            id += 1;
            told = shop.pay(id, meta.clone());
        }
        let is_found = self.found.map(|found| told.contains(found));
        assert!(is_found == Some(true) || is_open(&told), "{self:?}, late {late}: {told}");
        // Whoever asks again pays only what is known not to be paid.
        let again = shop.pay(id + 1, meta);
        assert!(shop.paid() <= self.paid, "{self:?}, late {late}: {told}; then {again}");
        is_found
    }
}

/// A server that ends between its work and its answer, and whose list is late, of two parts, of several pages, or of another's
/// payment.
#[test]
fn what_a_server_did_before_it_ended_is_found_out_or_left_open() {
    const AT_ONCE: u64 = 8;
    let rounds = rounds(18, 10_000);
    let [wanted, settled] = [const { AtomicU64::new(0) }; 2];
    thread::scope(|scope| {
        for first in 0..AT_ONCE {
            let (wanted, settled) = (&wanted, &settled);
            scope.spawn(move || {
                for round in (first..rounds).step_by(AT_ONCE as usize) {
                    let case = &CASES[round as usize % CASES.len()];
                    let is_found = case.play(fastrand::usize(..=case.late));
                    wanted.fetch_add(is_found.is_some().into(), Relaxed);
                    settled.fetch_add((is_found == Some(true)).into(), Relaxed);
                }
            });
        }
    });
    let (wanted, settled) = (wanted.into_inner(), settled.into_inner());
    assert!(settled * 100 >= wanted * 95, "{settled} of {wanted} were settled within 5 s");
    println!("{settled} of {wanted} were settled within 5 s, of {rounds}");
}
