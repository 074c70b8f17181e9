//! An end that cannot be recorded, since another process keeps the file locked.
use super::{Shop, kill, paid, pay};
use crate::mcp::client::{BIN, Client, until};
use serde_json::{Value, json};
use std::{fs, process::Command};

/// Pays at once, and answers when there is a file `$LEDGER.go`; with an error, if that says so.
const SERVER: &str = r#"while read -r line; do
    case $line in *tools/call*) ;; *) continue ;; esac
    id=${line#*\"id\":}; id=${id%%,*}
    echo charge_card >> "$LEDGER"
    while [ ! -e "$LEDGER.go" ]; do sleep 0.02; done
    case $(cat "$LEDGER.go") in
    error) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32602,"message":"declined"}}' ;;
    *) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"paid"}]}}' ;;
    esac
done"#;

pub(super) fn open(shop: &Shop, options: &[&str]) -> Client {
    let mut command = Command::new(BIN);
    command.args(["mcp", "--records"]).arg(&shop.records).args(options);
    command.args(["--", "sh", "-c", SERVER]).env("LEDGER", &shop.ledger);
    Client::start(command, shop.ledger.clone())
}

fn key() -> Value {
    json!({ "idempotencyKey": "k" })
}

#[test]
fn an_answer_whose_end_is_not_recorded_says_so_and_is_recorded_once_that_is_possible() {
    for (kind, place) in [("result", "/result/_meta"), ("error", "/error/data/_meta")] {
        let shop = Shop::new();
        let go = shop.ledger.with_extension("go");
        let mut client = open(&shop, &[]);
        pay(&mut client, 1, &key(), json!({ "order": "o-1" }));
        until("it has paid", || (shop.paid() == 1).then_some(()));
        let other = rusqlite::Connection::open(&shop.records).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        fs::write(&go, kind).unwrap();
        let answer = client.answer(1);
        let meta = answer.pointer(place).unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(*meta, json!({ "tool-reliability/recorded": false }));
        let log = client.log_until(|log| log.contains("end_not_recorded"));
        let event: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&event["level"], event["record"].as_str().map(str::len)),
            (&json!("warn"), Some(12))
        );

        other.execute_batch("COMMIT").unwrap();
        let count = "SELECT count(*) FROM calls WHERE state <> 'inflight'";
        let ended = || other.query_row(count, [], |row| row.get::<_, u32>(0)).unwrap();
        until("the end is recorded", || (ended() == 1).then_some(()));
        kill(&mut client);
        let mut client = open(&shop, &[]);
        let again = paid(&mut client, 2, &key(), json!({ "order": "o-1" }));
        assert!(again.pointer(place).is_none(), "{again}");
        assert_eq!(shop.paid(), 1);
        fs::remove_file(go).unwrap();
    }
}

#[test]
fn the_summary_counts_ends_that_were_not_recorded() {
    let shop = Shop::new();
    let go = shop.ledger.with_extension("go");
    let mut client = open(&shop, &[]);
    pay(&mut client, 1, &key(), json!({ "order": "o-1" }));
    until("it has paid", || (shop.paid() == 1).then_some(()));
    let other = rusqlite::Connection::open(&shop.records).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    fs::write(&go, "result").unwrap();
    client.answer(1);
    client.close();
    let log = client.log_until(|log| log.contains("\"summary\""));
    assert!(log.contains("\"unrecorded\":1"), "{log}");
    fs::remove_file(go).unwrap();
}
