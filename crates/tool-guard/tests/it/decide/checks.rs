//! Calls of unknown outcome of which another call of the host's tells.
use super::host::{Folder, Host, STRONG, pay};
use serde_json::{Value, json};

const CATALOG: &str = r#"[tools.pay]
effect = "mutating"
[tools.pay.check]
tool = "list_payments"
args = { cents = "/cents" }
found = "/payments"
match = { amount = "/cents" }
not_before = "/at"
absent_after = "1ms"
[tools.list_payments]
effect = "read_only"
"#;

/// The host makes a call of the tool that lists payments, and gets this.
fn list(host: &mut Host, params: &Value, output: &Value) {
    let call = json!({ "event": "before", "id": "l", "tool": "list_payments", "params": params });
    assert_eq!(host.ask(&call)["decision"], "allow");
    host.ask(&json!({ "event": "after", "id": "e", "before": "l", "output": output }));
}

#[test]
fn what_a_host_lists_settles_the_payment() {
    let paid = |at: u64| json!({ "payments": [{ "amount": 500, "at": at }] });
    let (asked, none) = (json!({ "cents": 500 }), json!({ "payments": [] }));
    let now = tr_core::WallClock::unix_ms(&tr_core::SystemClock);
    for (params, output, settled) in [
        (&asked, paid(now + 50_000), Some("replayed")),
        (&asked, none.clone(), None),
        // Another question, an older payment, a failure of the list: nothing is known.
        (&json!({ "cents": 500, "limit": 1 }), none.clone(), Some("outcome_unknown")),
        (&asked, paid(now - 90_000), Some("outcome_unknown")),
        (&asked, json!("try again later"), Some("outcome_unknown")),
    ] {
        let folder = Folder::new();
        let catalog = folder.file("tools.toml", CATALOG);
        let options = ["--catalog", catalog.to_str().unwrap()];
        let mut host = Host::start(&folder, &options);
        assert_eq!(host.ask(&pay(1, STRONG))["decision"], "allow");
        host.kill();
        let mut host = Host::start(&folder, &options);
        let blocked = host.ask(&pay(1, STRONG));
        assert_eq!(blocked["code"], "outcome_unknown");
        let reason = blocked["reason"].as_str().unwrap();
        assert!(
            reason.contains(r#"[CHECK: list_payments {"cents":500} shows whether the call ran]"#),
            "{reason}"
        );
        list(&mut host, params, &output);
        // The record is settled beside the host's next lines, and absence counts only after a while.
        let may_change = settled != Some("outcome_unknown");
        let mut again = host.ask(&pay(3, STRONG));
        let mut tries = 0;
        while may_change && again["code"] == "outcome_unknown" && tries < 1_000 {
            list(&mut host, params, &output);
            again = host.ask(&pay(3, STRONG));
            tries += 1;
        }
        assert_eq!(again["code"].as_str(), settled, "{params} {output}: {again}");
        if settled == Some("replayed") {
            assert!(again["reason"].as_str().unwrap().starts_with("[SETTLED]"), "{again}");
        }
    }
}

#[test]
fn a_failure_of_the_list_says_nothing() {
    let folder = Folder::new();
    let catalog = folder.file("tools.toml", CATALOG);
    let mut host = Host::start(&folder, &["--catalog", catalog.to_str().unwrap()]);
    host.ask(&pay(1, STRONG));
    let told = host.ask(&json!({ "event": "after", "id": 2, "before": 1, "error": "HTTP 503" }));
    assert!(told["notes"].to_string().contains("[CHECK: list_payments"), "{told}");
    let call = json!({ "event": "before", "id": "l", "tool": "list_payments", "params": { "cents": 500 } });
    host.ask(&call);
    host.ask(&json!({ "event": "after", "id": "e", "before": "l", "output": { "payments": [] }, "isError": true }));
    assert_eq!(host.ask(&pay(3, STRONG))["code"], "outcome_unknown");
}

/// It may have been made between the list and its answer.
#[test]
fn a_list_that_began_before_the_payment_shows_no_absence() {
    let folder = Folder::new();
    let catalog = folder.file("tools.toml", CATALOG);
    let mut host = Host::start(&folder, &["--catalog", catalog.to_str().unwrap()]);
    let list = json!({ "event": "before", "id": "l", "tool": "list_payments", "params": { "cents": 500 } });
    assert_eq!(host.ask(&list)["decision"], "allow");
    host.ask(&pay(1, STRONG));
    host.ask(&json!({ "event": "after", "id": 2, "before": 1, "error": "HTTP 503" }));
    host.ask(&json!({ "event": "after", "id": "e", "before": "l", "output": { "payments": [] } }));
    for id in 3..200 {
        assert_eq!(host.ask(&pay(id, STRONG))["code"], "outcome_unknown");
    }
}

/// Guards of several servers keep their records in one file.
#[test]
fn a_list_says_nothing_of_the_payments_of_another_server() {
    let folder = Folder::new();
    let catalog = folder.file("tools.toml", CATALOG);
    let bank = |name| ["--catalog", catalog.to_str().unwrap(), "--name", name];
    let mut ours = Host::start(&folder, &bank("our bank"));
    ours.ask(&pay(1, STRONG));
    ours.kill();
    let mut other = Host::start(&folder, &bank("another bank"));
    list(&mut other, &json!({ "cents": 500 }), &json!({ "payments": [] }));
    // What it might settle, it does beside these.
    for id in 1..200 {
        other.ask(&json!({ "event": "turn_end", "id": id, "session": "s" }));
    }
    assert_eq!(other.end(), 0);
    let mut ours = Host::start(&folder, &bank("our bank"));
    assert_eq!(ours.ask(&pay(1, STRONG))["code"], "outcome_unknown");
}
