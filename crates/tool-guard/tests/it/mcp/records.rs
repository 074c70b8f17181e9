//! What is recorded of a call outlives the guard.
mod command;
mod late;
mod person;
mod private;
mod unrecorded;
mod unusable;

use super::client::{BIN, Client, ledger, now, text, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const TOOLU: &str = "toolu_01A09q90qw90lq917835lq9";

/// Ids of clients that hold across connections, by which a call is the same.
fn strong() -> [Value; 3] {
    [
        json!({ "idempotencyKey": "k" }),
        codex("call_0", "t"),
        json!({ "claudecode/toolUseId": TOOLU }),
    ]
}

/// A place for records and a ledger, which several guards share.
struct Shop {
    records: PathBuf,
    ledger: PathBuf,
}

impl Shop {
    fn new() -> Self {
        let ledger = ledger();
        Self { records: ledger.with_extension("records").join("calls.db"), ledger }
    }

    /// A guard over these records, with its own client.
    fn open(&self, options: &[&str]) -> Client {
        let mut command = Command::new(BIN);
        command.args(["mcp", "--records"]).arg(&self.records).args(options);
        command.args(["--", BIN, "__serve", "--ledger"]).arg(&self.ledger);
        Client::start(command, self.ledger.clone())
    }

    /// The operator's state folder.
    fn state(&self) -> PathBuf {
        self.ledger.with_extension("records").join("state")
    }

    fn paid(&self) -> usize {
        fs::read_to_string(&self.ledger).unwrap_or_default().matches("charge_card").count()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.ledger.with_extension("records"));
    }
}

fn pay(client: &mut Client, id: u32, meta: &Value, arguments: Value) {
    let params = json!({ "name": "charge_card", "arguments": arguments, "_meta": meta });
    client.request(id, "tools/call", params);
}

fn paid(client: &mut Client, id: u32, meta: &Value, arguments: Value) -> Value {
    pay(client, id, meta, arguments);
    client.answer(id)
}

/// What Codex says of a call: its id is drawn at random.
fn codex(call: &str, thread: &str) -> Value {
    let id = format!("exec-8f14e45f-ceea-467f-9b0c-ab12cd34ef56-{call}");
    json!({ "callId": id, "threadId": thread })
}

fn code(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["tool-reliability/error"]["code"]
}

/// Kills the guard as nothing can be caught, and waits until its server has ended, too.
fn kill(client: &mut Client) {
    client.signal(Signal::KILL);
    client.wait();
}

#[test]
fn a_payment_of_a_killed_guard_is_unknown_at_once_and_not_made_again() {
    for meta in strong() {
        let shop = Shop::new();
        let order = json!({ "order": "o-1", "then": "hang" });
        let mut client = shop.open(&[]);
        pay(&mut client, 1, &meta, order.clone());
        until("it has paid", || (shop.paid() == 1).then_some(()));
        kill(&mut client);

        let mut client = shop.open(&[]);
        let answer = paid(&mut client, 7, &meta, order.clone());
        assert_eq!(code(&answer), "outcome_unknown", "{answer}");
        let said = text(&answer);
        assert!(said.contains("do not repeat it") && said.contains(": ask the user]"), "{said}");
        // Other arguments under its id are another call's, and are not run either.
        pay(&mut client, 8, &meta, json!({ "order": "o-2" }));
        assert_eq!(code(&client.answer(8)), "idempotency_conflict", "{meta}");
        assert_eq!(shop.paid(), 1, "{meta}");
    }
}

#[test]
fn a_payment_that_was_answered_is_answered_again_by_the_next_guard() {
    for meta in strong() {
        let shop = Shop::new();
        let order = json!({ "order": "o-1" });
        let mut client = shop.open(&[]);
        let first = paid(&mut client, 1, &meta, order.clone());
        kill(&mut client);
        let mut client = shop.open(&[]);
        assert_eq!(paid(&mut client, 2, &meta, order)["result"], first["result"], "{meta}");
        assert_eq!(shop.paid(), 1, "{meta}");
    }
}

#[test]
fn a_payment_that_its_dead_server_refused_is_made_by_the_next_guard() {
    for meta in strong() {
        let shop = Shop::new();
        let mut client = shop.open(&["--on-server-exit", "stay"]);
        paid(&mut client, 1, &json!({}), json!({ "order": "o-0", "then": "crash" }));
        let refused = paid(&mut client, 2, &meta, json!({ "order": "o-1" }));
        assert_eq!(code(&refused), "server_gone", "{refused}");
        assert_eq!(refused["result"]["_meta"]["tool-reliability/error"]["ran"], "no", "{refused}");
        kill(&mut client);
        let mut client = shop.open(&[]);
        pay(&mut client, 1, &meta, json!({ "order": "o-1" }));
        assert_eq!(text(&client.answer(1)), "charged order o-1", "{meta}");
        assert_eq!(shop.paid(), 2);
    }
}

#[test]
fn an_unknown_payment_bars_its_equals_in_its_conversation_also_after_a_restart() {
    let shop = Shop::new();
    let order = json!({ "order": "o-1", "then": "hang" });
    let id = codex;
    let mut client = shop.open(&[]);
    pay(&mut client, 1, &id("call_1", "t"), order.clone());
    until("it has paid", || (shop.paid() == 1).then_some(()));
    kill(&mut client);

    let mut client = shop.open(&["--timeout", "2s"]);
    let answer = paid(&mut client, 2, &id("call_2", "t"), order.clone());
    assert_eq!(code(&answer), "outcome_unknown", "{answer}");
    let said = text(&answer);
    assert!(said.contains("that earlier call may have run; this one did not run"), "{said}");
    assert!(said.contains("check first whether the earlier call ran"), "{said}");
    assert!(!said.contains("it may have run"), "{said}");
    assert_eq!(shop.paid(), 1);
    // What the caller says is another call is, and so is one of another conversation.
    pay(&mut client, 3, &json!({ "idempotencyKey": "new", "threadId": "t" }), order.clone());
    until("it has paid", || (shop.paid() == 2).then_some(()));
    pay(&mut client, 4, &id("call_3", "u"), order);
    until("it has paid", || (shop.paid() == 3).then_some(()));
}

#[test]
fn twenty_guards_on_one_file_pay_once_and_all_answer() {
    let shop = Shop::new();
    let meta = json!({ "idempotencyKey": "k" });
    let mut clients: Vec<_> = (0..20).map(|_| shop.open(&[])).collect();
    for client in &mut clients {
        pay(client, 1, &meta, json!({ "order": "o-1" }));
    }
    for client in &mut clients {
        assert_eq!(text(&client.answer(1)), "charged order o-1");
    }
    assert_eq!(shop.paid(), 1);
}

/// As of a machine that sleeps, or a debugger.
#[test]
fn a_repeat_behind_a_frozen_guard_is_answered_within_its_own_limit() {
    let shop = Shop::new();
    let meta = json!({ "idempotencyKey": "k" });
    let order = json!({ "order": "o-1", "then": "hang" });
    let mut frozen = shop.open(&[]);
    pay(&mut frozen, 1, &meta, order.clone());
    until("it has paid", || (shop.paid() == 1).then_some(()));
    frozen.signal(Signal::STOP);
    let mut client = shop.open(&["--timeout", "1s"]);
    client.list_tools();
    let asked = now();
    pay(&mut client, 1, &meta, order);
    let answer = client.answer(1);
    assert_eq!(code(&answer), "idempotency_in_flight", "{answer}");
    // Without that limit it waits for 30 s.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert_eq!(shop.paid(), 1);
}

#[test]
fn a_weak_id_ends_with_its_answer() {
    let shop = Shop::new();
    let meta = json!({ "claudecode/toolUseId": "functions.charge_card:0" });
    let mut clients = [shop.open(&[]), shop.open(&[])];
    for (paid, client) in (1..).zip(&mut clients) {
        for id in 1..=2 {
            pay(client, id, &meta, json!({ "order": "o-1" }));
            assert_eq!(text(&client.answer(id)), "charged order o-1");
        }
        // It ends with the answer.
        assert_eq!(shop.paid(), 2 * paid);
    }
}

#[test]
fn without_bodies_a_repeat_is_told_that_the_call_ran_and_when() {
    let shop = Shop::new();
    let meta = json!({ "idempotencyKey": "k" });
    let mut client = shop.open(&["--record-bodies", "digest"]);
    for id in 1..=2 {
        let said = text(&paid(&mut client, id, &meta, json!({ "order": "o-secret" })));
        if id == 1 {
            assert_eq!(said, "charged order o-secret");
        } else {
            assert!(said.contains("has ended") && said.contains(" ago"), "{said}");
        }
    }
    assert_eq!(shop.paid(), 1);
    kill(&mut client);
    let folder = shop.records.parent().unwrap();
    for file in fs::read_dir(folder).unwrap().flatten().filter(|it| it.path().is_file()) {
        let bytes = fs::read(file.path()).unwrap();
        assert!(!bytes.windows(8).any(|part| part == b"o-secret"), "{file:?}");
    }
}

#[test]
fn with_a_key_nothing_of_a_call_can_be_read_in_the_file() {
    let shop = Shop::new();
    let key = shop.ledger.with_extension("key");
    fs::write(&key, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let catalog = shop.ledger.with_extension("toml");
    fs::write(&catalog, "[tools.charge_card.records]\nshow = [\"/order\"]\n").unwrap();
    let files = [key.to_str().unwrap(), catalog.to_str().unwrap()];
    let options = ["--records-key-file", files[0], "--catalog", files[1]];
    let meta = codex("call-secret", "thread-secret");
    let mut clients = [shop.open(&options), shop.open(&options)];
    for client in &mut clients {
        pay(client, 1, &meta, json!({ "order": "o-secret" }));
        assert_eq!(text(&client.answer(1)), "charged order o-secret");
    }
    assert_eq!(shop.paid(), 1);
    let folder = shop.records.parent().unwrap();
    for file in fs::read_dir(folder).unwrap().flatten().filter(|it| it.path().is_file()) {
        let bytes = fs::read(file.path()).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"-secret"), "{file:?}");
    }
    // Nor does the file show what a guess could be compared with: another key makes other names.
    let names = |file: &Path| {
        let read = "SELECT key, digest FROM calls";
        let file = rusqlite::Connection::open(file).unwrap();
        file.query_row(read, [], |row| Ok([row.get::<_, Vec<u8>>(0)?, row.get(1)?])).unwrap()
    };
    let guess = Shop::new();
    let other = guess.ledger.with_extension("key");
    fs::write(&other, "f".repeat(64)).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    let mut guesser = guess.open(&["--records-key-file", other.to_str().unwrap()]);
    pay(&mut guesser, 1, &meta, json!({ "order": "o-secret" }));
    assert_eq!(text(&guesser.answer(1)), "charged order o-secret");
    let (ours, theirs) = (names(&shop.records), names(&guess.records));
    assert!(ours[0] != theirs[0] && ours[1] != theirs[1]);
    // Without the key, or with another one, no guard starts.
    let mut strangers =
        [shop.open(&[]), shop.open(&["--records-key-file", other.to_str().unwrap()])];
    for stranger in &mut strangers {
        assert_eq!(stranger.wait().code(), Some(1));
        let said = stranger.stderr();
        assert!(said.contains("encrypted") && said.contains("--records-key-file"), "{said}");
    }
    assert_eq!(shop.paid(), 1);
    fs::remove_file(other).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(shop.open(&options).wait().code(), Some(1));
    fs::remove_file(key).unwrap();
    fs::remove_file(catalog).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn records_are_their_users_alone_and_the_first_start_says_where_they_are() {
    let mut client = Client::guarded(&[]);
    paid(&mut client, 1, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-1" }));
    let folder = client.state().join("tool-guard");
    assert_eq!(mode(&folder), 0o700);
    for file in fs::read_dir(&folder).unwrap().flatten().filter(|it| it.path().is_file()) {
        assert_eq!(mode(&file.path()), 0o600, "{file:?}");
    }
    client.signal(Signal::TERM);
    client.wait();
    let said = client.stderr();
    assert!(said.contains("records.db (mode 0600)") && said.contains("24 h"), "{said}");
}

#[test]
fn a_named_place_that_cannot_be_used_is_an_error_and_the_default_one_a_warning() {
    let file = ledger();
    fs::write(&file, "no folder").unwrap();
    let within = file.join("calls.db");
    let shop = Shop { records: within, ledger: ledger() };
    let mut client = shop.open(&[]);
    assert_eq!(client.wait().code(), Some(1));
    let said = client.stderr();
    assert!(said.contains("records cannot be kept in"), "{said}");

    let ledger = ledger();
    fs::write(ledger.with_extension("state"), "no folder").unwrap();
    let mut command = Command::new(BIN);
    command.args(["mcp", "--", BIN, "__serve", "--ledger"]).arg(&ledger);
    let mut client = Client::start(command, ledger.clone());
    pay(&mut client, 1, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-1" }));
    assert_eq!(text(&client.answer(1)), "charged order o-1");
    client.signal(Signal::TERM);
    client.wait();
    let said = client.stderr();
    assert!(said.contains("records stay in memory"), "{said}");
    fs::remove_file(ledger.with_extension("state")).unwrap();
    fs::remove_file(file).unwrap();
}

#[test]
fn a_file_that_is_locked_refuses_payments_and_lets_reads_pass() {
    let shop = Shop::new();
    let mut client = shop.open(&[]);
    client.list_tools();
    let other = rusqlite::Connection::open(&shop.records).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = paid(&mut client, 1, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-1" }));
    assert_eq!(code(&answer), "store_unavailable", "{answer}");
    assert_eq!(answer["result"]["_meta"]["tool-reliability/error"]["ran"], "no");
    let said = text(&answer);
    assert!(said.starts_with("the call was not run, because it could not be recorded: "), "{said}");
    assert!(said.contains("another process keeps the file locked"), "{said}");
    assert!(!said.contains("may have") && !said.contains("retry is safe"), "{said}");
    // The tool has not failed, so a loop of it is none.
    for id in [4, 5] {
        pay(&mut client, id, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-1" }));
        let said = text(&client.answer(id));
        assert!(said.contains("locked") && !said.contains("[LOOP"), "{said}");
    }
    let params =
        json!({ "name": "slow", "arguments": { "ms": 1 }, "_meta": { "idempotencyKey": "r" } });
    assert!(client.ask_for(2, "tools/call", params)["result"].is_object());
    assert_eq!(shop.paid(), 0);
    other.execute_batch("COMMIT").unwrap();
    pay(&mut client, 3, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-1" }));
    assert_eq!(text(&client.answer(3)), "charged order o-1");
}

/// An equal call of its conversation may be recorded as unknown there.
#[test]
fn a_call_without_an_id_is_refused_where_its_equals_cannot_be_read() {
    let shop = Shop::new();
    let mut client = shop.open(&[]);
    client.list_tools();
    let other = rusqlite::Connection::open(&shop.records).unwrap();
    other.execute_batch("DROP TABLE calls").unwrap();
    let chat = json!({ "vscode.conversationId": "c-1" });
    let answer = paid(&mut client, 1, &chat, json!({ "order": "o-1" }));
    assert_eq!(code(&answer), "store_unavailable", "{answer}");
    assert_eq!(answer["result"]["_meta"]["tool-reliability/error"]["ran"], "no");
    let said = text(&answer);
    assert!(said.contains("the records of equal calls could not be read: "), "{said}");
    // Calls outside of conversations have no equals in the file.
    pay(&mut client, 2, &json!({}), json!({ "order": "o-2" }));
    assert_eq!(text(&client.answer(2)), "charged order o-2");
    assert_eq!(shop.paid(), 1);
}
