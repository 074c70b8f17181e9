//! The default records while their file cannot be used: nothing that may be recorded there runs again.
use super::{code, kill, pay};
use crate::{
    mcp::client::{BIN, Client, ledger, text, until},
    operator::by_token,
};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

/// A user whose guards keep their records at the default path. They go with the first client.
struct User {
    ledger: PathBuf,
    earlier: Vec<Client>,
}

impl User {
    fn new() -> Self {
        Self { ledger: ledger(), earlier: Vec::new() }
    }

    fn file(&self) -> PathBuf {
        self.ledger.with_extension("state").join("tool-guard/records.db")
    }

    fn log(&self) -> PathBuf {
        self.file().with_extension("db-wal")
    }

    fn start(&self, options: &[&str]) -> Client {
        let mut command = Command::new(BIN);
        command.arg("mcp").args(options).args(["--", BIN, "__serve", "--ledger"]).arg(&self.ledger);
        Client::start(command, self.ledger.clone())
    }

    fn open(&self) -> Client {
        let mut client = self.start(&[]);
        client.list_tools();
        client
    }

    /// Pays so many orders through a guard that then ends, or is killed.
    fn pay(&mut self, orders: u32, is_killed: bool) {
        let mut client = self.open();
        for order in 0..orders {
            assert_eq!(text(&paid(&mut client, order)), format!("charged order o-{order}"));
        }
        match is_killed {
            true => kill(&mut client),
            false => {
                client.close();
                assert!(client.wait().success());
            }
        }
        self.earlier.push(client);
    }

    fn paid(&self) -> usize {
        fs::read_to_string(&self.ledger).unwrap_or_default().matches("charge_card").count()
    }

    /// What `tool-guard records` says, and its exit code.
    fn records(&self, args: &[&str]) -> (String, Option<i32>) {
        let mut command = Command::new(BIN);
        command.arg("records").args(args);
        let state = self.ledger.with_extension("state");
        command.env("XDG_STATE_HOME", &state);
        if args[0] == "accept-loss" {
            by_token(&mut command, &state);
        }
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (String::from_utf8(said).unwrap(), output.status.code())
    }
}

/// The answer to the payment of an order, under the order's key.
fn paid(client: &mut Client, order: u32) -> Value {
    let meta = json!({ "idempotencyKey": format!("k-{order}") });
    pay(client, 100 + order, &meta, json!({ "order": format!("o-{order}") }));
    client.answer(100 + order)
}

/// The refusal says to ask the user, and neither where the file is nor what lifts it.
#[track_caller]
fn is_refused(answer: &Value) {
    assert_eq!(code(answer), "store_unavailable", "{answer}");
    assert_eq!(answer["result"]["_meta"]["tool-reliability/error"]["ran"], "no", "{answer}");
    let said = text(answer);
    assert!(said.contains("ask the user"), "{said}");
    assert!(!said.contains("records.db") && !said.contains("tool-guard "), "{said}");
}

fn by_hand(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

/// What is said of an unusable file, and what makes it one.
type Way = (&'static str, fn(&Path));

const WAYS: [Way; 9] = [
    ("not a SQLite database", |file| {
        let mut bytes = fs::read(file).unwrap();
        bytes[..16].fill(b'x');
        fs::write(file, bytes).unwrap();
    }),
    ("the file is damaged", |file| {
        let mut bytes = fs::read(file).unwrap();
        bytes[4_096..].fill(0xa5);
        fs::write(file, bytes).unwrap();
    }),
    ("a newer version wrote this file", |file| by_hand(file, "UPDATE tr_schema SET format = 99")),
    ("belongs to another program", |file| by_hand(file, "PRAGMA application_id = 42")),
    ("records.db-wal is missing", |file| by_hand(file, "UPDATE tr_log SET mark = mark + 1")),
    ("the file is missing or empty, and its log is not", |file| {
        fs::rename(file, file.with_extension("db-wal")).unwrap();
    }),
    ("other users can write the file", |file| {
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    }),
    ("is a link", |file| {
        fs::rename(file, file.with_extension("moved")).unwrap();
        symlink(file.with_extension("moved"), file).unwrap();
    }),
    ("is not a regular file", |file| {
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
    }),
];

#[test]
fn what_may_be_recorded_in_an_unusable_file_does_not_run_again() {
    for (why, spoil) in WAYS {
        let mut user = User::new();
        user.pay(1, false);
        spoil(&user.file());
        let mut client = user.open();
        let known = paid(&mut client, 0);
        // Only a file that lacks its log can be read.
        match why.ends_with("-wal is missing") {
            true => assert_eq!(text(&known), "charged order o-0"),
            false => is_refused(&known),
        }
        is_refused(&paid(&mut client, 1));
        client.request(2, "tools/call", json!({ "name": "slow", "arguments": { "ms": 1 } }));
        assert!(client.answer(2)["result"].is_object(), "reads pass");
        assert_eq!(user.paid(), 1, "{why}");
        let said = client.stderr();
        assert!(said.contains("records.db cannot be used") && said.contains(why), "{why}: {said}");
        assert!(said.contains("records_unusable") && said.contains("records check"), "{said}");
        let doctor = Command::new(BIN)
            .args(["doctor", "--no-start"])
            .env("XDG_STATE_HOME", user.ledger.with_extension("state"))
            .output()
            .unwrap();
        let said = String::from_utf8(doctor.stdout).unwrap();
        assert!(said.contains(why) && said.contains("tool-guard records check"), "{said}");
        assert_eq!(doctor.status.code(), Some(1));
    }
}

/// Settled payments ran again where a log lost a frame in its middle.
#[test]
fn of_a_damaged_log_what_can_be_read_is_answered_and_a_person_accepts_the_loss() {
    let mut user = User::new();
    user.pay(12, true);
    let mut log = fs::read(user.log()).unwrap();
    let middle = log.len() / 2;
    log[middle..middle + 32].copy_from_slice(&b"DAMAGED!".repeat(4));
    fs::write(user.log(), log).unwrap();

    let mut client = user.open();
    assert_eq!(text(&paid(&mut client, 0)), "charged order o-0");
    for order in [11, 12] {
        is_refused(&paid(&mut client, order));
    }
    let (said, code) = user.records(&["check"]);
    assert!(said.contains("is damaged at frame") && said.contains("accept-loss"), "{said}");
    assert!(said.contains("records can be read, 0 cannot") && code == Some(1), "{said}");
    // A named file is an error.
    let mut named = user.start(&["--records", user.file().to_str().unwrap()]);
    assert_eq!(named.wait().code(), Some(1));

    let (said, code) = user.records(&["accept-loss"]);
    assert_eq!(code, Some(0), "{said}");
    let kept = fs::read_dir(user.file().parent().unwrap()).unwrap().flatten();
    let kept = kept.filter(|file| file.file_name().to_str().unwrap().contains(".lost-"));
    assert_eq!(kept.count(), 2, "the file and its log");
    assert_eq!(user.records(&["check"]).1, Some(0));
    assert_eq!(user.paid(), 12);
    // The guard that runs goes on.
    until("it pays", || (text(&paid(&mut client, 12)) == "charged order o-12").then_some(()));
    assert_eq!(user.paid(), 13);
    user.earlier.push(client);
    user.earlier.push(named);
}

/// The start waits for it, then says who has it; the guard goes on once it is free.
#[test]
fn a_file_that_is_locked_at_the_start_refuses_and_its_holder_is_named() {
    let mut user = User::new();
    user.pay(1, false);
    let other = Connection::open(user.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut client = user.open();
    assert_eq!(text(&paid(&mut client, 0)), "charged order o-0", "it can be read");
    is_refused(&paid(&mut client, 1));
    other.execute_batch("COMMIT").unwrap();
    until("it pays", || (text(&paid(&mut client, 1)) == "charged order o-1").then_some(()));
    assert_eq!(user.paid(), 2);
    let said = client.stderr();
    assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
}

#[test]
fn a_guard_that_ends_leaves_all_records_in_the_one_file() {
    let mut user = User::new();
    user.pay(3, false);
    assert!(!user.log().exists());
    let copy = user.ledger.with_extension("copy");
    fs::copy(user.file(), &copy).unwrap();
    let count = "SELECT count(*) FROM calls WHERE state = 'done'";
    let count = Connection::open(&copy).unwrap().query_row(count, [], |row| row.get::<_, u32>(0));
    assert_eq!(count.unwrap(), 3);
    fs::remove_file(&copy).unwrap();

    // A backup while a guard runs, which keeps its records in the log.
    let mut client = user.open();
    paid(&mut client, 3);
    assert!(user.log().exists());
    let place = copy.to_str().unwrap();
    assert_eq!(user.records(&["backup", place]).1, Some(0));
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let (listed, _) = user.records(&["list", "--records", place]);
    assert_eq!(listed.lines().count(), 4, "{listed}");
    let (said, code) = user.records(&["backup", place]);
    assert!(said.contains("cannot make") && code == Some(1), "{said}");
    fs::remove_file(&copy).unwrap();
}
